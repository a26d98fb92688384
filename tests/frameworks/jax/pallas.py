"""A kernel written in Pallas, compiled by Triton, beside what XLA makes of linear algebra and a transform."""
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

import visible_gpu  # noqa: F401


def add_kernel(x, y, out):
    out[...] = x[...] + y[...]


@jax.jit
def add(x, y):
    return pl.pallas_call(add_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(8,),
                          in_specs=[pl.BlockSpec((128,), lambda i: (i,))] * 2, out_specs=pl.BlockSpec((128,), lambda i: (i,)),
                          compiler_params=plgpu.CompilerParams(num_warps=4))(x, y)


x = jnp.arange(1024, dtype=jnp.float32)
for _ in range(3):
    x = add(x, x)
a = jnp.eye(32) + jnp.ones((32, 32))
q, r = jnp.linalg.qr(a)
c = jnp.linalg.cholesky(a)
f = jnp.fft.fft(jnp.ones((8, 256), jnp.complex64))
print(jax.devices()[0].platform, x.shape, q.shape, c.shape, f.shape)
