"""Differences between rbchain's model of an MJCF file and MuJoCo's: reasons for an error, and a warning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from .mjcf_actuators import Actuators
from .mjcf_forces import Forces
from .mjcf_source import Source
from .mjcf_visuals import mesh_file
from .notes import MAX_NAMES

#: Fields of tendons that exert forces, with the flags that disable them.
OF_TENDONS = {
    "tendon_stiffness": ("spring", "passive"),
    "tendon_stiffnesspoly": ("spring", "passive"),
    "tendon_damping": ("damper", "passive"),
    "tendon_dampingpoly": ("damper", "passive"),
    "tendon_frictionloss": ("frictionloss", "constraint"),
    "tendon_limited": ("limit", "constraint"),
    "tendon_armature": (),
}


def refusals(source: Source, forces: Forces) -> Iterator[str]:
    """Forces that rbchain cannot represent, with the value that was found and the one that is expected."""
    for joint in range(source.model.njnt):
        for reason in _of_joint(source, forces, joint):
            yield f"joint {source.label('joint', joint)}: {reason}"
    for body in range(1, source.model.nbody):
        for reason in _of_body(source, forces, body):
            yield f"body {source.label('body', body)}: {reason}"
    if forces.in_fluid:
        yield from _of_fluid(source)
    for flex in _where(source.model.flex_rigid == 0):
        yield f"flex {source.label('flex', flex)} is deformable; expected rigid bodies only"


def _of_joint(source: Source, forces: Forces, joint: int) -> Iterator[str]:
    model, kind, dofs = source.model, source.joint_type(joint), source.dofs(joint)
    stiffness, damping = forces.stiffness[joint].tolist(), forces.damping[dofs.start].tolist()
    if any(damping[1:]):
        yield (
            f"damping, including actuators, is {damping}; expected zeros after the first number, because "
            "rbchain has linear damping only"
        )
    if any(stiffness) and kind in ("free", "ball"):
        yield f"stiffness is {stiffness}; expected 0, because rbchain has springs at hinge and slide joints only"
    elif stiffness[1]:
        yield (
            f"stiffness is {stiffness}; expected 0 as the second number, because rbchain has linear and cubic springs "
            "only"
        )
    yields = source.field("jnt_springyield", model.njnt)[joint]
    if any(stiffness) and yields:
        yield f"springyield is {yields}; expected 0, because rbchain does not model plastic springs"


def _of_body(source: Source, forces: Forces, body: int) -> Iterator[str]:
    if forces.gravcomp[body] < 0.0:
        yield f"gravcomp is {forces.gravcomp[body]}; expected zero or more"
    if body in forces.partly_compensated:
        yield (
            "actuators compensate its gravity (gravcomp) at some of the joints that carry it; expected "
            "actuatorgravcomp at all of these joints or at none"
        )
    if source.model.body_plugin[body] >= 0:
        yield "a plugin acts on it; expected none, because rbchain does not run MuJoCo plugins"


def _of_fluid(source: Source) -> Iterator[str]:
    model = source.model
    if model.opt.wind.any():
        yield (
            f"wind is {model.opt.wind.tolist()}; expected zeros, because the fluid of a model is at rest. Remove wind "
            "and pass rbchain.Current(velocity) to simulate(forces=[...])"
        )
    moving = model.body_weldid[model.geom_bodyid] > 0
    for geom in _where((model.geom_fluid[:, 0] > 0.0) & moving):
        where = f"geom {source.label('geom', geom)} of body {source.label('body', model.geom_bodyid[geom])}"
        yield (
            f"{where}: fluidshape is ellipsoid; expected none, because rbchain has the fluid forces of MuJoCo's "
            "inertia model only"
        )


def differences(
    source: Source,
    forces: Forces,
    equalities: tuple[list[int], list[int]],
    actuators: Actuators,
    no_sensors: list[str],
) -> list[str]:
    """Parts of the text of a warning: elements that the model omits, and elements that it treats differently.

    `equalities` are the equality constraints that the model has, and the ones that it omits. `no_sensors` are the
    labels of the sensors that it omits.
    """
    exact, no_constraints = equalities
    lacking = [f"{what} {_listed(names)}" for what, names in _lacking(source, forces, no_constraints).items() if names]
    lacking += [f"actuators {_shortened(names)} ({reason})" for reason, names in actuators.left_out.items()]
    lacking += [f"sensors {_shortened(no_sensors)}"] if no_sensors else []
    lacking += _lacking_without_names(source)
    found = [f"omitted from the model: {', '.join(lacking)}"] if lacking else []
    changed = _changed(source, forces, exact) | {
        "actuatorfrcrange of joints {} does not limit the sum of their actuator forces": _joints(
            source, actuators.unclipped
        )
    }
    return found + [text.format(_listed(names)) for text, names in changed.items() if names]


def _lacking(source: Source, forces: Forces, equalities: list[int]) -> dict[str, list[str]]:
    """Parts of the mechanism that the model omits, with the names of the elements."""
    return {
        "gravity compensation by actuators of bodies": _bodies(source, forces.lifted_by_actuators),
        "quadratic drag of bodies that are fixed to other bodies with drag:": _bodies(source, forces.without_drag()),
        "tendons": [source.label("tendon", i) for i in _active_tendons(source)],
        "equality constraints": [_equality(source, i) for i in equalities],
        "limits of ball joints": _joints(source, _limited(source, ("ball",))),
    }


def _lacking_without_names(source: Source) -> list[str]:
    """Parts that most files contain. The warning does not name their elements, because it would become too long."""
    model, limits = source.model, len(_limited(source, ("slide", "hinge")))
    types, affinities = (
        np.bitwise_or.reduce([*getattr(model, f"geom_{name}"), *getattr(model, f"flex_{name}"), 0])
        for name in ("contype", "conaffinity")
    )
    found = {
        f"limits of joints ({limits}; stored, and enforced by model.hard_stops())": limits,
        "contacts of geoms (use model.contacts)": (types & affinities or model.npair)
        and not source.disabled("contact", "constraint"),
        "geoms of the world (use rb.Plane as ground)": model.body_geomnum[0],
        "height fields and some meshes as visuals": _without_visuals(source),
    }
    return [name for name, there in found.items() if there]


def _without_visuals(source: Source) -> list[int]:
    """Geoms whose shapes are not among the visuals."""
    shapes = ("mesh", "hfield", "sdf")
    geoms = (geom for geom in range(source.model.ngeom) if source.geom_type(geom) in shapes)
    return [geom for geom in geoms if not mesh_file(source, geom)]


def _changed(source: Source, forces: Forces, exact: list[int]) -> dict[str, list[str]]:
    """Sentences on parts that act in another way than in MuJoCo, with the names of the parts."""
    model = source.model
    rough = [j for j in range(model.njnt) if forces.friction[source.dofs(j)].any()]
    floating = [j for j in rough if source.joint_type(j) == "free"]
    scalar = [j for j in range(model.njnt) if source.joint_type(j) in ("slide", "hinge")]
    moved = [j for j in scalar if model.qpos0[model.jnt_qposadr[j]]]
    policies = source.field("tree_sleep_policy", 0)
    asleep = _where(policies == source.kind("SleepPolicy", "mjSLEEP_INIT"))
    sleeping = [model.tree_bodyadr[tree] for tree in asleep if source.enabled("sleep")]
    return {
        "equality constraints {} are exact: solref and solimp are ignored": [_equality(source, i) for i in exact],
        "dry friction of joints {} is regularized: they creep instead of sticking": _joints(source, rough),
        "dry friction of joints {} acts along body axes, and not along world axes": _joints(source, floating),
        "positions of joints {} are relative to the pose in the file: ref is not added": _joints(source, moved),
        "activations of keyframes {} are not read: lags of controls start at zero": [
            source.label("key", key) for key in range(model.nkey) if model.na and model.key_act[key].any()
        ],
        "mocap bodies {} are fixed at their pose in the file": _bodies(source, _where(model.body_mocapid >= 0)),
        "bodies {} are simulated from the start, although the file lets them sleep": _bodies(source, sleeping),
    }


def _joints(source: Source, which: Iterable[int]) -> list[str]:
    return [source.label("joint", joint) for joint in which]


def _bodies(source: Source, which: Iterable[int]) -> list[str]:
    return [source.label("body", body) for body in which]


def _limited(source: Source, kinds: tuple[str, ...]) -> list[int]:
    """Joints of these types with limits that MuJoCo enforces."""
    if source.disabled("limit", "constraint"):
        return []
    return [j for j in _where(source.model.jnt_limited) if source.joint_type(j) in kinds]


def _active_tendons(source: Source) -> list[int]:
    """Tendons that exert forces without an actuator."""
    model, active = source.model, np.zeros(source.model.ntendon, bool)
    for field, flags in OF_TENDONS.items():
        if not source.disabled(*flags):
            active |= np.array([np.any(values) for values in source.field(field, model.ntendon)], bool)
    count = len(model.actuator_trntype)
    for i in _where(model.actuator_trntype == source.kind("Trn", "mjTRN_TENDON")):
        own = [source.field(f"actuator_{name}", count, 1)[i] for name in ("armature", "damping", "dampingpoly")]
        active[model.actuator_trnid[i, 0]] |= any(np.any(value) for value in own)
    return _where(active)


def _equality(source: Source, i: int) -> str:
    """Label of an equality constraint: its name, or its type and the elements that it connects."""
    name, model = source.name("equality", i), source.model
    if name:
        return repr(name)
    kind = source.equality_type(i)
    if kind in ("connect", "weld"):
        element = "site" if model.eq_objtype[i] == source.kind("Obj", "mjOBJ_SITE") else "body"
    else:
        element = kind.removesuffix("vert").removesuffix("strain")
    coupled = [source.label(element, j) for j in (model.eq_obj1id[i], model.eq_obj2id[i]) if j >= 0]
    return f"{kind} of {' and '.join(coupled)}"


def _where(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


def _shortened(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return _listed(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
