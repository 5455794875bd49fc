"""Mass matrix: compute H(q) by the composite-rigid-body algorithm.

Sources: Walker and Orin (1982); Featherstone (2008), section 6.2.
"""

from ...compiling.jit import kernel
from ..forces.added_mass import add_mass_of_water
from ..spatial.inertias import Rigid, add_rigids, rigid_at_root
from ..spatial.storage import load3, load9, load_rigid, store_rigid
from ..spatial.vectors import z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force, rigid_along
from ..tree.kinematics import force_on_parent, rigid_inertia, rotate_dof
from ..tree.layout import POSING_CARRIED, parameter

RIGID_ROWS = 10  # numbers of a rigid inertia: mass, first moment (3), rotational inertia (6)


@kernel
def mass_matrix(model, q, H, composite, work, k):
    """Compute the mass matrix H (n, n, lanes) for the samples in lanes k.

    H must start as zeros. Only the diagonal and entries (i, j) where one dof is an ancestor of the other are written;
    all others stay zero. H is in kg m^2, kg m or kg.
    `composite` (n, RIGID_ROWS, lanes) is scratch memory.
    """
    n = model.parent.shape[0]
    for i in range(n):
        rotate_dof(i, model, q, work, k)
        store_rigid(composite, i, 0, k, Rigid(*rigid_inertia(i, model, work, k)))
    for i in range(n - 1, -1, -1):
        project_inertia(i, model, H, composite, work, k)
        pass_inertia(i, model, composite, work, k)
    add_mass_of_water(model, H, work, k)


@kernel
def pass_inertia(i, model, composite, work, k):
    """Add the composite inertia of the subtree of dof i to its parent's composite inertia: Ic_parent += Ic_i.

    The sum is about the parent's joint origin, in world axes. The inertia of each dof, a Rigid, is in the first
    RIGID_ROWS rows of `composite` (n, rows, lanes).
    """
    p = model.parent[i]
    if p < model.parent.shape[0]:
        Ic = load_rigid(composite, i, 0, k)
        if model.posing[i] != POSING_CARRIED:  # a carried dof has the same joint origin as its parent
            Ic = rigid_at_root(Ic, load3(work.dof, i, frame.LEVER, k))
        store_rigid(composite, p, 0, k, add_rigids(load_rigid(composite, p, 0, k), Ic))


@kernel
def project_inertia(i, model, H, composite, work, k):
    """Compute H_ij = H_ji = S_j . Ic_i S_i for dof i and its ancestors j; H_ii includes the armature.

    H is (n, n, lanes), in kg m^2, kg m or kg. `composite` (n, RIGID_ROWS, lanes) has the Rigid of the subtree of dof i.
    """
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    f = rigid_along(model.joint[i], load_rigid(composite, i, 0, k), axis, advance)
    H[i, i, k] = joint_force(model.joint[i], axis, advance, f) + parameter(model.parameters, i, param.ARMATURE, k)
    j = i
    while model.parent[j] < n:
        f = force_on_parent(j, f, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        H_ij = joint_force(model.joint[j], axis, advance, f)
        H[i, j, k] = H_ij
        H[j, i, k] = H_ij
