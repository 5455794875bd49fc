"""Jacobians of points of bodies. Each method passes its states and one driver to the kernel model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray
from ..drivers import motion
from ..model.arguments import copied_to, names_of_frames
from ..model.kernel_arrays import ORIGIN
from .attributes import Attributes


class Jacobians(Attributes):
    """Methods of Model that compute Jacobians of points of bodies."""

    @explains_calls(
        is_method=True,
        axes="the result as it is, in world axes, as Pinocchio's LOCAL_WORLD_ALIGNED",
        reference_frame="the result as it is, in world axes, as Pinocchio's LOCAL_WORLD_ALIGNED",
        body="frame",
    )
    def jacobian(
        self,
        q: npt.ArrayLike,
        frame: str | Sequence[str],
        *,
        point: npt.ArrayLike = ORIGIN,
        relative_to: str | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the geometric Jacobian of a point of a body or frame, in world axes.

        Parameters
        ----------
        q : (..., nq) array
        frame : str or sequence of str
            Name of a body, or of a frame on a fixed joint; or m of these names.
        point : (3,) array, m
            The point, in the axes of that body or frame, from its origin.
        relative_to : str, optional
            The motion is measured relative to this body or frame; the default is the world. The result is then the
            velocity relative to the point of this body that has the same position, in world axes. The columns of
            joints that move both bodies are zero.
        out : array, optional
            As for `forward_dynamics`.

        Returns
        -------
        (..., 6, nv) array
            The Jacobian J: J qd is the velocity of the point, then the angular velocity. For several frames: (..., m,
            6, nv).

        Raises
        ------
        UnknownNameError
            If the model has no such body or frame.
        ModelError
            If the point does not have three finite components.

        Notes
        -----
        This is Pinocchio's Jacobian for LOCAL_WORLD_ALIGNED. MuJoCo's `mj_jac` has the same rows, but its velocities of
        a free joint differ.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(2, length=0.5)
        >>> arm.jacobian([0, 0], "link2", point=(0.5, 0, 0))[[1, 5]].tolist()
        [[1.0, 0.5], [1.0, 1.0]]
        >>> arm.jacobian([0, 0], "link2", point=(0.5, 0, 0), relative_to="link1")[1].tolist()
        [0.0, 0.5]
        """
        model = self.kernel_model
        if not isinstance(frame, str):
            return _of_frames(partial(self.jacobian, q, point=point, relative_to=relative_to), frame, out, q)
        observed = model.observed_point(frame, point, relative_to)
        if out is None and (result := model.single_calls[motion.jacobian](observed, q)) is not None:
            return result
        return model.compute(motion.jacobian, (6, model.nv), ("q",), (q,), given=(observed,), out=out)

    @explains_calls(is_method=True)
    def jacobian_derivative(
        self,
        q: npt.ArrayLike,
        qd: npt.ArrayLike,
        frame: str | Sequence[str],
        *,
        point: npt.ArrayLike = ORIGIN,
        relative_to: str | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Compute the time derivative of the `jacobian` along a motion with the velocities qd.

        The acceleration of the point is J qdd + dJ/dt qd.

        Parameters
        ----------
        q, qd : (..., nq) and (..., nv) arrays
        frame, point, relative_to, out
            As for `jacobian`.

        Returns
        -------
        (..., 6, nv) array

        Raises
        ------
        ModelError
            As for `jacobian`.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(1, length=0.5)
        >>> arm.jacobian_derivative([0], [2], "link1", point=(0.5, 0, 0))[:, 0].tolist()
        [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        """
        if not isinstance(frame, str):
            of_frame = partial(self.jacobian_derivative, q, qd, point=point, relative_to=relative_to)
            return _of_frames(of_frame, frame, out, q, qd)
        given = (self.kernel_model.observed_point(frame, point, relative_to),)
        return self.kernel_model.compute(
            motion.jacobian_derivative, (6, self.nv), ("q", "qd"), (q, qd), given=given, out=out
        )


def _of_frames(
    compute: Callable[[str], FloatArray], frames: Sequence[str], out: FloatArray | None, *states: npt.ArrayLike
) -> FloatArray:
    """Return the results of `compute` for several frames, (..., m, 6, nv)."""
    return copied_to(out, np.stack([compute(name) for name in names_of_frames(frames)], -3), states)
