"""
A model of your own
===================

``unweave recover examples.my_model:model`` recovers the model of this file from what it answers. Put your
own in its place: a scikit-learn, torch or Keras model, or a function from rows to answers.
"""

from sklearn.datasets import load_diabetes
from sklearn.neural_network import MLPRegressor

x, y = load_diabetes(return_X_y=True)
model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=2000, random_state=0)
model.fit(x, (y - y.mean()) / y.std())
print(f"a network of {model.hidden_layer_sizes} units, R2 {model.score(x, (y - y.mean()) / y.std()):.2f}")
