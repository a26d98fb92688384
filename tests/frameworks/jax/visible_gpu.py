"""JAX uses a GPU only where there is a device file of it, and a simulated one has none: told before its first use, it looks at another."""
from jax._src import hardware_utils

hardware_utils._NVIDIA_GPU_DEVICES = ['/dev/null']
