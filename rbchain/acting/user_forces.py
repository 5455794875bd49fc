"""Joint forces from a user function. `flatten_user_forces` compiles it and adds its parameters to the arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import finite_number, real_array
from ..core.control.user_calls import FUNCTION_ADDRESS, FUNCTION_BY_PARAMETERS, FUNCTION_DERIVATIVES
from ..errors import ArgumentError
from .numeric_fields import Drive, NumericField
from .packing import SampleNumbers
from .user_code import UserCall, is_batch_function, name_of, user_function

if TYPE_CHECKING:
    from ..facade.model import Model

#: Allowed deviation, relative to the largest derivative, and the increments of positions and velocities.
TOLERANCE, INCREMENT = 1e-5, 1e-5


@dataclass(frozen=True, eq=False)
class UserForces(Drive):
    """Joint forces from a user function, added to the forces of the drives.

    Parameters
    ----------
    function : function(t, q, qd, parameters, out)
        Adds the joint forces (nv,) to `out`, which is initially zero. `t` is the time in s; the other arguments are
        flat float64 arrays of one sample. Numba compiles the function once in each process; a function decorated with
        `numba.njit` is used unchanged. `Sampled` also accepts functions in plain Python for the whole batch.
    parameters : (m,) or (..., m) array
        Values for the functions, the same for all samples or different for each.
    derivatives : function(t, q, qd, parameters, out), optional
        Writes the derivatives of the joint forces with respect to q to out[0], and with respect to qd to out[1]. `out`
        (2, nv, nv) is initially zero; out[0, i, j] is the derivative of force i with respect to position j. For free
        and spherical joints, derivatives with respect to q are taken along the velocities qd. The methods "rosenbrock"
        and "radau" use the derivatives. Without them, these methods compute finite differences, which takes more time.
    parameter_derivatives : function(t, q, qd, parameters, out), optional
        Writes the derivatives of the joint forces with respect to the parameters: `out` (nv, m) is initially zero, and
        out[i, j] is the derivative of force i with respect to parameter j. `simulate` requires it for
        `derivatives=["NAME.parameters"]`. NAME is `name`, or by default the name of the function.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    If the function raises an exception, the sample ends with status USER_FUNCTION_FAILED. This also applies to trial
    states that are not part of the motion. With `rb.options(boundscheck=True)`, reading or writing beyond the end of
    an array raises an IndexError.

    With wrong derivatives, the order of the method "rosenbrock" is lower. The error estimate captures most of the
    resulting error, so the steps become shorter, but errors may exceed the tolerances. "radau" needs more iterations or
    shorter steps. Check the derivatives with `check_derivatives`.

    Examples
    --------
    >>> import rbchain as rb
    >>> def spring(t, q, qd, parameters, out):
    ...     out[0] -= parameters[0] * q[0]
    >>> rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    >>> settings = {"method": "rk4", "step": 1e-3}
    >>> motion = rod.simulate([[0.1]], duration=1.0, drives=[rb.UserForces(spring, parameters=[0.3])], **settings)
    >>> float(motion.q[0, -1, 0].round(6))
    0.084385

    A stiff spring, with its derivative:

    >>> def stiffness(t, q, qd, parameters, out):
    ...     out[0, 0, 0] = -parameters[0]
    >>> stiff = rb.UserForces(spring, parameters=[1e6], derivatives=stiffness)
    >>> stiff.check_derivatives(rod, [0.1], [0.0])
    """

    numeric_fields: ClassVar = (NumericField("parameters", "", shape=(None,)),)
    function: Callable[..., Any]
    _: KW_ONLY
    parameters: npt.ArrayLike = ()
    derivatives: Callable[..., Any] | None = None
    parameter_derivatives: Callable[..., Any] | None = None

    def label(self) -> str:
        """Return the names of the class and of the function, for messages."""
        return f"UserForces with function {name_of(self.function)}"

    def check_derivatives(self, model: Model, q: npt.ArrayLike, qd: npt.ArrayLike, t: float = 0.0) -> None:
        """Compare the derivatives with central differences of the function in one state.

        If `parameter_derivatives` is given, this includes the derivatives with respect to the parameters.

        Parameters
        ----------
        model : Model
        q, qd : (nq,), (nv,) arrays, rad or m, and rad/s or m/s
        t : float, s

        Raises
        ------
        ArgumentError
            If an entry deviates by more than 1e-5 of the largest derivative with respect to q, to qd, or to the
            parameters. The message contains the entry. Also if there are no derivatives, or if parameters differ
            between samples.

        Examples
        --------
        >>> import rbchain as rb
        >>> def damper(t, q, qd, parameters, out):
        ...     out[0] -= 2.0 * qd[0]
        >>> def wrong(t, q, qd, parameters, out):
        ...     out[1, 0, 0] = 2.0
        >>> rod = rb.Model.serial_chain(1)
        >>> rb.UserForces(damper, derivatives=wrong).check_derivatives(rod, [0.1], [0.0])
        Traceback (most recent call last):
        ...
        rbchain.errors.ArgumentError: derivatives of UserForces: d tau[0] / d qd[0] is 2; ...
        """
        _compare_derivatives(self, model, q, qd, t)


def name_in_paths(forces: UserForces) -> str:
    """Return the owner of the parameters of UserForces in paths."""
    return forces.name or str(getattr(forces.function, "__name__", "function"))


def flatten_user_forces(model: Model, drive: UserForces, numbers: SampleNumbers) -> dict[int, UserCall]:
    """Return the functions of UserForces by the rows of their addresses in `SharedActions.functions`."""
    what = drive.label()
    first, count = numbers.add_row(f"{what}: parameters", drive.parameters)
    sizes = model.nq, model.nv, count
    if is_batch_function(drive.function, False):
        raise ArgumentError(
            f"{what}: it has no argument out, so Python would call it for the whole batch, which only Sampled "
            "supports; expected function(t, q, qd, parameters, out). Add out, or use rb.Sampled(function, period=...)"
        )
    function = user_function("UserForces", drive.function, sizes, (model.nv,))
    calls = {FUNCTION_ADDRESS: UserCall(what, function, first, count)}
    for row, name, results in (
        (FUNCTION_DERIVATIVES, "derivatives", (2, model.nv, model.nv)),
        (FUNCTION_BY_PARAMETERS, "parameter_derivatives", (model.nv, count)),
    ):
        given = getattr(drive, name)
        if given is not None:
            function = user_function(f"{name} of UserForces", given, sizes, results)
            calls[row] = UserCall(f"UserForces with {name} {name_of(given)}", function, first, count)
    return calls


def _compare_derivatives(
    forces: UserForces, model: Model, q_given: npt.ArrayLike, qd_given: npt.ArrayLike, t_given: float
) -> None:
    """Implement `UserForces.check_derivatives`."""
    if forces.derivatives is None and forces.parameter_derivatives is None:
        raise ArgumentError("UserForces has no derivatives; expected a function. Pass derivatives=...")
    t = finite_number("t", t_given, ArgumentError)
    q, qd = real_array("q", q_given, ArgumentError), real_array("qd", qd_given, ArgumentError)
    own, n = real_array(f"{forces.label()}: parameters", forces.parameters, ArgumentError), model.nv
    for name, shape, expected in (("q", q.shape, (model.nq,)), ("qd", qd.shape, (n,))):
        if shape != expected:
            raise ArgumentError(f"{name} has shape {shape}; expected {expected}, for one state")
    if own.ndim > 1:
        raise ArgumentError(
            f"{forces.label()}: parameters has shape {own.shape}; expected (m,). Check the parameters of one sample"
        )
    own = np.atleast_1d(own)
    sizes_of_parameters = np.where(own == 0.0, 1.0, np.abs(own))
    sizes = model.nq, n, own.size
    function = user_function("UserForces", forces.function, sizes, (n,))

    def joint_forces(name: str, change: np.ndarray) -> np.ndarray:
        out = np.zeros(n)
        positions = model.integrate(q, change) if name == "q" else q.copy()
        parameters = own + change if name == "parameters" else own.copy()
        function.call(t, positions, qd + change if name == "qd" else qd.copy(), parameters, out)
        return out

    for argument, results, names in (
        ("derivatives", (2, n, n), ("q", "qd")),
        ("parameter_derivatives", (n, own.size), ("parameters",)),
    ):
        given = getattr(forces, argument)
        if given is None:
            continue
        of_user, found = user_function(f"{argument} of UserForces", given, sizes, results), np.zeros(results)
        of_user.call(t, q.copy(), qd.copy(), own.copy(), found)
        for name, of_name in zip(names, found.reshape(len(names), n, -1), strict=True):
            steps = INCREMENT * {"q": np.ones(n), "qd": 1.0 + np.abs(qd), "parameters": sizes_of_parameters}[name]
            differences = np.zeros_like(of_name)
            for j, change in enumerate(np.diag(steps)):
                differences[:, j] = (joint_forces(name, change) - joint_forces(name, -change)) / (2 * steps[j])
            _check_entries(argument, name, of_name, differences, sizes_of_parameters if name == "parameters" else 1.0)


def _check_entries(
    argument: str, name: str, found: np.ndarray, differences: np.ndarray, sizes: np.ndarray | float
) -> None:
    """Raise an ArgumentError if derivatives (n, count) with respect to the components of `name` differ.

    `sizes` (count,) are changes of the components whose effects are comparable.
    """
    largest = np.abs(sizes * differences).max(initial=1e-3)
    wrong = ~(np.abs(sizes * (found - differences)) <= TOLERANCE * largest)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ArgumentError(
            f"{argument} of UserForces: d tau[{i}] / d {name}[{j}] is {found[i, j]:.6g}; the difference "
            f"of the function is {differences[i, j]:.6g}. Correct one of the two functions"
        )
