"""The Rosenbrock method: order conditions, orders of convergence, stiff problems, and agreement with rk45."""

import itertools

import numpy as np

from rbchain.core.integration import tableaus


def rooted_trees(order):
    """Rooted trees with `order` vertices; a tree is the sorted tuple of the subtrees at its root."""
    if order == 1:
        return [()]
    found = set()
    for partition in partitions(order - 1, order - 1):
        for children in itertools.product(*(rooted_trees(size) for size in partition)):
            found.add(tuple(sorted(children)))
    return sorted(found)


def partitions(total, largest):
    """The sums of positive numbers, none above `largest`, that make `total`."""
    if total == 0:
        return [()]
    return [(n, *rest) for n in range(min(total, largest), 0, -1) for rest in partitions(total - n, n)]


def vertices(tree):
    return 1 + sum(vertices(child) for child in tree)


def density(tree):
    """gamma(t) of Butcher's theory."""
    return vertices(tree) * np.prod([density(child) for child in tree])


def classical_coefficients(tableau):
    """alpha, beta, the weights of the result and of the error, and Gamma, from the transformed coefficients."""
    stages = tableau.c.size - 2
    inner = slice(1, stages + 1)
    gamma = np.linalg.inv(np.eye(stages) / tableau.gamma - tableau.C[inner, inner])
    alpha = tableau.A[inner, inner] @ gamma
    return alpha, alpha + gamma, tableau.A[stages + 1, inner] @ gamma, tableau.error[inner] @ gamma, gamma


def stage_vector(tree, alpha, beta):
    """The sums over all stages of a tree: beta along a vertex with one child, alpha at one with several."""
    found = np.ones(len(alpha))
    for child in tree:
        found = found * ((beta if len(tree) == 1 else alpha) @ stage_vector(child, alpha, beta))
    return found


def test_rodas5p_satisfies_the_order_conditions():
    """Hairer and Wanner (1996), section IV.7, theorem 7.4: sum of b_i Phi_i(t) = 1 / gamma(t) for all trees t."""
    tableau = tableaus.RODAS5P
    alpha, beta, weights, error, gamma = classical_coefficients(tableau)
    np.testing.assert_allclose(alpha.sum(1), tableau.c[1:-1], rtol=0, atol=1e-13)
    np.testing.assert_allclose(gamma.sum(1), tableau.d[1:], rtol=0, atol=1e-12)
    for order in range(1, 7):
        defects = [weights @ stage_vector(t, alpha, beta) - 1 / density(t) for t in rooted_trees(order)]
        embedded = [(weights - error) @ stage_vector(t, alpha, beta) - 1 / density(t) for t in rooted_trees(order)]
        assert (np.abs(defects).max() < 1e-12) == (order <= tableau.order), (order, defects)
        assert (np.abs(embedded).max() < 1e-12) == (order <= tableau.order - 1), (order, embedded)
    assert [len(rooted_trees(order)) for order in range(1, 7)] == [1, 1, 2, 4, 9, 20]


def test_the_continuous_extension_of_rodas5p_has_fourth_order():
    tableau = tableaus.RODAS5P
    alpha, beta, weights, _, gamma = classical_coefficients(tableau)
    g = tableau.dense[:, 1:] @ gamma
    for x in (0.2, 0.5, 0.9):
        inside = x * (weights + (1 - x) * (g[0] + x * (g[1] + x * g[2])))
        for order in range(1, 6):
            wanted = [x**order / density(t) for t in rooted_trees(order)]
            defects = [inside @ stage_vector(t, alpha, beta) for t in rooted_trees(order)] - np.array(wanted)
            assert (np.abs(defects).max() < 1e-12) == (order <= 4), (order, defects)


def test_rodas5p_is_l_stable():
    """|R(z)| <= 1 on the imaginary axis, and R vanishes at infinity."""
    tableau = tableaus.RODAS5P
    _, beta, weights, *_ = classical_coefficients(tableau)
    ones = np.ones(len(beta))
    for z in 1j * np.logspace(-3, 6, 400):
        amplification = 1 + z * weights @ np.linalg.solve(np.eye(len(beta)) - z * beta, ones)
        assert abs(amplification) <= 1 + 1e-12
    assert abs(1 - weights @ np.linalg.solve(beta, ones)) < 1e-11
