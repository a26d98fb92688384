"""A matrix product in Triton, autotuned over tile sizes, and a fused softmax."""
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({'M_TILE': m, 'N_TILE': n, 'K_TILE': 32}, num_warps=4, num_stages=2) for m, n in ((64, 64), (128, 64), (32, 32))],
                 key=['m', 'n', 'k'])
@triton.jit
def matmul(a, b, c, m, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    row, column = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE), tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    total = tl.zeros((M_TILE, N_TILE), dtype=tl.float32)
    for start in range(0, k, K_TILE):
        inner = start + tl.arange(0, K_TILE)
        total += tl.dot(tl.load(a + row[:, None] * k + inner[None, :]), tl.load(b + inner[:, None] * n + column[None, :]))
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16))


@triton.jit
def softmax(x, y, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    row = tl.load(x + tl.program_id(0) * columns + at, mask=at < columns, other=float('-inf')).to(tl.float32)
    up = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + tl.program_id(0) * columns + at, (up / tl.sum(up, axis=0)).to(tl.float16), mask=at < columns)


a, b = (torch.randn(256, 256, device='cuda', dtype=torch.float16) for _ in range(2))
c, d = torch.empty_like(a), torch.empty_like(a)
for _ in range(3):
    matmul[lambda meta: (256 // meta['M_TILE'], 256 // meta['N_TILE'])](a, b, c, 256, 256, 256)
    softmax[(256,)](c, d, 256, WIDTH=256)
torch.cuda.synchronize()
print('done', tuple(d.shape))
