"""Fourier transforms and linear algebra: cuFFT, cuSOLVER, cuSPARSE and cuBLAS through torch.fft, torch.linalg and sparse tensors."""
import torch

torch.manual_seed(0)
signal = torch.randn(16, 1024, device='cuda')
spectrum = torch.fft.rfft(signal)
back = torch.fft.irfft(spectrum, n=1024)
image = torch.fft.fft2(torch.randn(4, 64, 64, device='cuda', dtype=torch.complex64))
print('transforms', tuple(spectrum.shape), tuple(back.shape), tuple(image.shape))

a = torch.eye(32, device='cuda') * 4
b = torch.ones(32, 8, device='cuda')
print('solve', tuple(torch.linalg.solve_ex(a, b)[0].shape))
print('cholesky', tuple(torch.linalg.cholesky_ex(a)[0].shape))
print('qr', [tuple(part.shape) for part in torch.linalg.qr(a)])
print('lu', [tuple(part.shape) for part in torch.linalg.lu_factor_ex(a)])
print('triangular', tuple(torch.linalg.solve_triangular(a, b, upper=True).shape))

rows = torch.arange(32, device='cuda')
sparse = torch.sparse_coo_tensor(torch.stack([rows, rows]), torch.ones(32, device='cuda'), (32, 32)).to_sparse_csr()
print('sparse', tuple((sparse @ b).shape))
torch.cuda.synchronize()
