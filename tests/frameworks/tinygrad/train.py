"""A small classifier of tinygrad, trained in a JIT: whole steps become CUDA graphs."""
from tinygrad import Device, Tensor, TinyJit, nn
from tinygrad.helpers import Context


class Net:
    def __init__(self):
        self.first, self.last = nn.Linear(64, 128), nn.Linear(128, 10)

    def __call__(self, x):
        return self.last(self.first(x).relu())


model = Net()
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)


@TinyJit
def step(x, y):
    with Context(TRAINING=1):
        optimizer.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss


x, y = Tensor.randn(32, 64).realize(), Tensor.randint(32, high=10).realize()
for _ in range(6):
    loss = step(x, y).realize()
Device[Device.DEFAULT].synchronize()
print(Device.DEFAULT, 'loss of shape', loss.shape)
