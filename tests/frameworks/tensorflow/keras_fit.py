"""Keras: a small convolutional classifier, compiled and fitted."""
import numpy as np
import tensorflow as tf

print('devices', [d.device_type for d in tf.config.list_physical_devices('GPU')])
model = tf.keras.Sequential([
    tf.keras.layers.Input((28, 28, 1)), tf.keras.layers.Conv2D(8, 3, activation='relu'), tf.keras.layers.MaxPooling2D(),
    tf.keras.layers.Flatten(), tf.keras.layers.Dense(32, activation='relu'), tf.keras.layers.Dense(10)])
model.compile('adam', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(np.ones((64, 28, 28, 1), np.float32), np.zeros(64, np.int64), batch_size=16, epochs=2, verbose=0)
print('epochs', len(history.history['loss']))
