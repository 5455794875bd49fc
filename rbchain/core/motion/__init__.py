"""The motion of samples: steps, events, contacts, sampled controllers, and saved states.

The functions of this package use these names for their arguments. Docstrings describe only other arrays and uses:

* `block` is a `core.tree.layout.Block`, and `actions` its BlockActions. `stepper`, `batch`, `records` and `tolerances`
  are described in `core.sample.records`, `settings` and `tableau` in `core.methods`, `contacts` and `modes` in
  `core.contacts`.
* `k` are all lanes of a block, or one lane; `lane` is one lane. A value at `k` is one value for each of these lanes.
* `y`, `y_new` and `state` (rows, lanes) are states. The first rows are q (nq), rad and m, and unit quaternions, then
  qd (n), rad/s and m/s, in body axes for free and spherical joints. The next rows are the integrals of control errors,
  rad s and m s, and the sensitivities.
* `rate` (rows, lanes), and the first and last entry of `rates` (stages, rows, lanes), are the time derivatives of
  states.
* `t` and `h` are the time and the length of a step, s. `theta` is a fraction of a step.
* `sample` is an index of a sample in the arrays of the batch, `slot` an index of a saved time. `span` = (first, last)
  are the samples first to last - 1.
* `e` is an event or an element of `contacts`, `row` a row of the arrays of contacts, or of the state. Gaps of
  contacts are in m, velocities in m/s, impulses in N s and forces in N. For a rotation, they are in rad, rad/s, N m s
  and N m. `numbers` (m, lanes) is `BlockActions.numbers`.
* `g` is a group of sampled controllers, `c` a channel of outputs, `s` a sensor or a spring.
"""
