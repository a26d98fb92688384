"""A small transformer of plain JAX: a jitted training step, steps inside of a scan, gradients in bfloat16."""
import jax
import jax.numpy as jnp

import visible_gpu  # noqa: F401

WIDTH, HEADS, LAYERS, WORDS, LENGTH = 64, 4, 2, 128, 32


def layer(key):
    keys = jax.random.split(key, 4)
    def dense(k, *shape):
        return jax.random.normal(k, shape) * 0.02
    return {'qkv': dense(keys[0], WIDTH, 3 * WIDTH), 'out': dense(keys[1], WIDTH, WIDTH), 'up': dense(keys[2], WIDTH, 4 * WIDTH),
            'down': dense(keys[3], 4 * WIDTH, WIDTH)}


def attention(p, x):
    q, k, v = jnp.split(x @ p['qkv'], 3, axis=-1)
    q, k, v = (t.reshape(*t.shape[:2], HEADS, -1).transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ p['out']


def loss(params, tokens):
    cast = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    x = cast['words'][tokens]
    for p in cast['layers']:
        x = x + attention(p, x)
        x = x + jax.nn.gelu(x @ p['up']) @ p['down']
    logits = (x @ cast['words'].T).astype(jnp.float32)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1).mean()


@jax.jit
def step(params, tokens):
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 1e-2 * g, params, gradients), value


@jax.jit
def many_steps(params, batches):
    return jax.lax.scan(lambda p, tokens: step(p, tokens), params, batches)


key = jax.random.key(0)
params = {'words': jax.random.normal(key, (WORDS, WIDTH)) * 0.02, 'layers': [layer(k) for k in jax.random.split(key, LAYERS)]}
tokens = jnp.zeros((4, LENGTH), jnp.int32)
for _ in range(3):
    params, value = step(params, tokens)
params, values = many_steps(params, jnp.zeros((4, 4, LENGTH), jnp.int32))
jax.block_until_ready(params)
print(jax.devices()[0].platform, value.shape, values.shape)
