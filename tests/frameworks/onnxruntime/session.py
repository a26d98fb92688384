"""A session of ONNX Runtime on the GPU: a small convolutional network, made here, run over batches."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def weight(name, *shape):
    return numpy_helper.from_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 0.1, name)


weights = [weight('w1', 16, 3, 3, 3), weight('b1', 16), weight('w2', 32, 16, 3, 3), weight('w3', 32, 10)]
nodes = [
    helper.make_node('Conv', ['x', 'w1', 'b1'], ['c1'], pads=[1, 1, 1, 1]), helper.make_node('Relu', ['c1'], ['r1']),
    helper.make_node('MaxPool', ['r1'], ['p1'], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node('Conv', ['p1', 'w2'], ['c2'], pads=[1, 1, 1, 1]), helper.make_node('Relu', ['c2'], ['r2']),
    helper.make_node('GlobalAveragePool', ['r2'], ['g']), helper.make_node('Flatten', ['g'], ['f']),
    helper.make_node('MatMul', ['f', 'w3'], ['m']), helper.make_node('Softmax', ['m'], ['y'])]
graph = helper.make_graph(nodes, 'net', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 32, 32])],
                          [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 10])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CUDAExecutionProvider'])
print(session.get_providers()[0])
for n in (1, 8, 8, 8):
    y, = session.run(None, {'x': np.ones((n, 3, 32, 32), np.float32)})
    print(n, y.shape)
