// The same problems solved by Pinocchio's C++ functions, one state after the other (the two files: ../README.md).
// Built against the headers of its PyPI wheel, so that its templates are compiled for this machine.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pinocchio/multibody.hpp>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace pin = pinocchio;
using Eigen::VectorXd;

enum Task { FORWARD_DYNAMICS, RK4, RK45, INVERSE_DYNAMICS, MASS_MATRIX, DERIVATIVES };
enum Joint { REVOLUTE, PRISMATIC, SCREW, FREE };

static double number(FILE* file) {
    double x;
    if (std::fscanf(file, "%lf", &x) != 1) std::fprintf(stderr, "the problem file ends too early\n"), std::exit(2);
    return x;
}

struct Problem {
    pin::Model model;
    int batch, task, repeats, calls;
    double duration, step, rtol, atol;
    std::vector<VectorXd> q, qd, tau;
};

static void add_joint(pin::Model& model, FILE* file) {
    const int parent = int(number(file)) + 1, kind = int(number(file));
    const double pitch = number(file);
    pin::SE3 placement;
    pin::Inertia::Vector3 cg;
    for (int i = 0; i < 3; ++i) placement.translation()[i] = number(file);
    for (int i = 0; i < 9; ++i) placement.rotation()(i / 3, i % 3) = number(file);
    const double mass = number(file);
    for (int i = 0; i < 3; ++i) cg[i] = number(file);
    double I[6];
    for (double& x : I) x = number(file);
    Eigen::Matrix3d tensor;
    tensor << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
    pin::JointModel joint;
    switch (kind) {
        case REVOLUTE: joint = pin::JointModelRZ(); break;
        case PRISMATIC: joint = pin::JointModelPZ(); break;
        case SCREW: joint = pin::JointModelHZ(pitch); break;
        default: joint = pin::JointModelFreeFlyer();
    }
    const auto id = model.addJoint(pin::JointIndex(parent), joint, placement, std::to_string(model.njoints));
    model.appendBodyToJoint(id, pin::Inertia(mass, cg, tensor), pin::SE3::Identity());
}

static Problem read(const char* path) {
    FILE* file = std::fopen(path, "r");
    if (!file) std::perror(path), std::exit(2);
    Problem p;
    const int n = int(number(file));
    p.batch = int(number(file));
    for (int i = 0; i < 3; ++i) p.model.gravity.linear()[i] = number(file);
    p.task = int(number(file)), p.repeats = int(number(file)), p.calls = int(number(file));
    p.duration = number(file), p.step = number(file), p.rtol = number(file), p.atol = number(file);
    for (int i = 0; i < n; ++i) add_joint(p.model, file);
    for (auto* states : {&p.q, &p.qd, &p.tau}) {
        states->assign(p.batch, VectorXd(states == &p.q ? p.model.nq : p.model.nv));
        for (VectorXd& state : *states)
            for (double& x : state) x = number(file);
    }
    std::fclose(file);
    return p;
}

// Row i of the result, solved for.
static void solve(const Problem& p, pin::Data& data, int i, VectorXd& row) {
    const int nv = p.model.nv;
    switch (p.task) {
        case FORWARD_DYNAMICS: row.head(nv) = pin::aba(p.model, data, p.q[i], p.qd[i], p.tau[i], pin::Convention::LOCAL); break;
        case INVERSE_DYNAMICS: row.head(nv) = pin::rnea(p.model, data, p.q[i], p.qd[i], p.tau[i]); break;
        case MASS_MATRIX:
            pin::crba(p.model, data, p.q[i], pin::Convention::LOCAL);
            row.head(nv) = data.M.row(0);
            break;
        case DERIVATIVES:
            pin::computeABADerivatives(p.model, data, p.q[i], p.qd[i], p.tau[i]);
            row.head(nv) = data.ddq_dq.row(nv - 1);
            break;
        case RK4: {
            const int steps = int(std::ceil(p.duration / p.step * (1 - 1e-12)));
            const double h = p.duration / steps;
            VectorXd q = p.q[i], v = p.qd[i], v2, v3, v4, a1, a2, a3, a4;
            const auto rate = [&](const VectorXd& q, const VectorXd& v) {
                return pin::aba(p.model, data, q, v, p.tau[i], pin::Convention::LOCAL);
            };
            for (int s = 0; s < steps; ++s) {
                a1 = rate(q, v);
                v2 = v + h / 2 * a1;
                a2 = rate(q + h / 2 * v, v2);
                v3 = v + h / 2 * a2;
                a3 = rate(q + h / 2 * v2, v3);
                v4 = v + h * a3;
                a4 = rate(q + h * v3, v4);
                q += h / 6 * (v + 2 * v2 + 2 * v3 + v4);
                v += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
            }
            row.head(nv) = q, row.segment(nv, nv) = v;
        }
    }
}

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: chain PROBLEM RESULT\n"), 2;
    const Problem p = read(argv[1]);
    if (p.task == RK45) return std::fprintf(stderr, "Pinocchio has no stepper; RK45 is not written here\n"), 2;
    pin::Data data(p.model);
    const int width = (p.task == RK4 ? 2 : 1) * p.model.nv + 1;
    std::vector<VectorXd> rows(p.batch, VectorXd::Zero(width));
    for (int repeat = 0; repeat < p.repeats; ++repeat) {
        const auto started = std::chrono::steady_clock::now();
        for (int call = 0; call < p.calls; ++call)
            for (int i = 0; i < p.batch; ++i) solve(p, data, i, rows[i]);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
        std::printf("%.9g\n", took.count() / p.calls);
    }
    FILE* file = std::fopen(argv[2], "w");
    if (!file) return std::perror(argv[2]), 2;
    for (const VectorXd& row : rows)
        for (int j = 0; j < width; ++j) std::fprintf(file, "%.17g%c", row[j], j + 1 < width ? ' ' : '\n');
    return std::fclose(file);
}
