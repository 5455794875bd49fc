// Forward dynamics and motions of batches of serial chains and open trees, after Featherstone (2008), section 7.3:
// kinematics outwards, articulated inertias inwards, joint dynamics outwards; and the balance of forces as their proof.
// All vectors in world axes; every body's spatial quantities refer to its own joint's origin.
//
//     chain PROBLEM RESULT        (the two files: ../README.md)
//
// Written over a number type: `double` (one chain after another) or, built with -DLANES=4 or 8, a vector of as many
// doubles (GCC's vector extension), a chain in each.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef LANES
#define LANES 1
#endif

#if LANES == 1
using Real = double;
static double& lane(Real& x, int) { return x; }
static double lane(const Real& x, int) { return x; }
static Real all(double x) { return x; }
static void sin_cos(Real x, Real& s, Real& c) { s = std::sin(x), c = std::cos(x); }
#else
using Real = double __attribute__((vector_size(8 * LANES)));
static double& lane(Real& x, int l) { return reinterpret_cast<double*>(&x)[l]; }
static double lane(const Real& x, int l) { return x[l]; }
static Real all(double x) { return x - Real{}; }
// glibc's vector functions (libmvec), by their names for AVX2 and AVX-512.
#if LANES == 4
extern "C" Real _ZGVdN4v_sin(Real), _ZGVdN4v_cos(Real);
static void sin_cos(Real x, Real& s, Real& c) { s = _ZGVdN4v_sin(x), c = _ZGVdN4v_cos(x); }
#else
extern "C" Real _ZGVeN8v_sin(Real), _ZGVeN8v_cos(Real);
static void sin_cos(Real x, Real& s, Real& c) { s = _ZGVeN8v_sin(x), c = _ZGVeN8v_cos(x); }
#endif
#endif

struct Vec {
    Real x, y, z;
};
static Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static Vec operator*(Real s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
static Real dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static Vec cross(Vec a, Vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

struct Mat {  // by columns
    Vec a, b, c;
};
static Vec operator*(const Mat& m, Vec v) { return v.x * m.a + v.y * m.b + v.z * m.c; }
static Mat operator*(const Mat& m, const Mat& n) { return {m * n.a, m * n.b, m * n.c}; }
static Vec transposed_times(const Mat& m, Vec v) { return {dot(m.a, v), dot(m.b, v), dot(m.c, v)}; }

struct Sym {
    Real xx, xy, xz, yy, yz, zz;
};
static Vec operator*(const Sym& s, Vec v) {
    return {s.xx * v.x + s.xy * v.y + s.xz * v.z, s.xy * v.x + s.yy * v.y + s.yz * v.z,
            s.xz * v.x + s.yz * v.y + s.zz * v.z};
}

struct Spatial {  // a motion (angular and linear velocity) or a force (moment and force)
    Vec ang, lin;
};
static Spatial operator+(Spatial a, Spatial b) { return {a.ang + b.ang, a.lin + b.lin}; }
static Spatial operator-(Spatial a, Spatial b) { return {a.ang - b.ang, a.lin - b.lin}; }
static Spatial operator*(Real s, Spatial a) { return {s * a.ang, s * a.lin}; }
static Real dot(Spatial a, Spatial b) { return dot(a.ang, b.ang) + dot(a.lin, b.lin); }

struct Inertia {  // [[J, H], [H^T, M]]
    Sym J;
    Mat H;
    Sym M;
};
static Spatial operator*(const Inertia& I, Spatial v) {
    return {I.J * v.ang + I.H * v.lin, transposed_times(I.H, v.ang) + I.M * v.lin};
}
static Sym operator+(const Sym& a, const Sym& b) {
    return {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz};
}
static Inertia operator+(const Inertia& a, const Inertia& b) {
    return {a.J + b.J, {a.H.a + b.H.a, a.H.b + b.H.b, a.H.c + b.H.c}, a.M + b.M};
}
static Sym less_square(const Sym& s, Real d, Vec u) {  // s - d u u^T
    const Vec w = d * u;
    return {s.xx - w.x * u.x, s.xy - w.x * u.y, s.xz - w.x * u.z, s.yy - w.y * u.y, s.yz - w.y * u.z, s.zz - w.z * u.z};
}
static Inertia deflate(const Inertia& I, Spatial U, Real d) {  // I - d U U^T
    const Vec w = d * U.ang;
    return {less_square(I.J, d, U.ang),
            {I.H.a - U.lin.x * w, I.H.b - U.lin.y * w, I.H.c - U.lin.z * w},
            less_square(I.M, d, U.lin)};
}
static Inertia at_lever(const Inertia& I, Vec r) {  // the same inertia, about a point that lies r back
    const Sym& M = I.M;
    const Mat H = {I.H.a + cross(r, {M.xx, M.xy, M.xz}), I.H.b + cross(r, {M.xy, M.yy, M.yz}),
                   I.H.c + cross(r, {M.xz, M.yz, M.zz})};
    // J' = J + [r x] H'^T + ([r x] H^T)^T, by the rows of H' and H
    const Vec h1 = {H.a.x, H.b.x, H.c.x}, h2 = {H.a.y, H.b.y, H.c.y}, h3 = {H.a.z, H.b.z, H.c.z};
    const Vec x = cross(r, h1), y = cross(r, h2), z = cross(r, h3);
    const Vec g1 = {I.H.a.x, I.H.b.x, I.H.c.x}, g2 = {I.H.a.y, I.H.b.y, I.H.c.y}, g3 = {I.H.a.z, I.H.b.z, I.H.c.z};
    const Vec p = cross(r, g1), q = cross(r, g2), s = cross(r, g3);
    return {{I.J.xx + x.x + p.x, I.J.xy + y.x + p.y, I.J.xz + z.x + p.z, I.J.yy + y.y + q.y, I.J.yz + z.y + q.z,
             I.J.zz + z.z + s.z},
            H, M};
}

enum Joint { REVOLUTE, PRISMATIC, SCREW };

struct Body {
    int parent, joint;
    double pitch, translation[3], rotation[9], mass, cg[3], inertia[6];  // rotation by rows; the axis is z of the body's own frame
};

struct Problem {
    int n, batch, task, calls, repeats;
    double gravity[3], duration, step, rtol, atol;
    std::vector<Body> bodies;
    std::vector<double> q, qd, tau;  // batch x n
};

struct Work {  // of one body
    Mat R;
    Vec lever, h;
    Spatial v, c, a, pA, U;
    Inertia IA;
    Real m, Dinv, u;
};

static Vec broadcast(const double* x) { return {all(x[0]), all(x[1]), all(x[2])}; }

class Chain {
   public:
    explicit Chain(const Problem& problem) : problem(problem), n(problem.n), work(problem.n + 1) {
        Work& base = work[n];
        base.R = {{all(1), all(0), all(0)}, {all(0), all(1), all(0)}, {all(0), all(0), all(1)}};
        base.a.lin = all(-1) * broadcast(problem.gravity);
    }

    void accelerations(const Real* q, const Real* qd, const Real* tau, Real* qdd) {
        for (int i = 0; i < n; ++i) move(i, q[i], qd[i]);
        for (int i = n - 1; i >= 0; --i) eliminate(i, tau[i]);
        for (int i = 0; i < n; ++i) accelerate(i, qdd[i]);
    }

    // Largest moment or force left in any body's balance, after `accelerations`.
    double balance() {
        std::vector<Spatial> left(n);
        double largest = 0;
        for (int i = n - 1; i >= 0; --i) {
            Work& w = work[i];
            const Spatial f = w.IA * w.a + w.pA;
            const Inertia I = rigid(i);
            left[i] = f - (I * w.a + momentum_rate(I, w.v)) - left[i];
            const int p = problem.bodies[i].parent;
            if (p < n) left[p] = left[p] + Spatial{f.ang + cross(w.lever, f.lin), f.lin};
            for (int l = 0; l < LANES; ++l)
                for (const Vec& x : {left[i].ang, left[i].lin})
                    for (const Real& e : {x.x, x.y, x.z}) largest = std::max(largest, std::abs(lane(e, l)));
        }
        return largest;
    }

   private:
    const Problem& problem;
    const int n;
    std::vector<Work> work;

    static Spatial axis_motion(const Body& b, Vec z) {
        const Vec none = {all(0), all(0), all(0)};
        if (b.joint == REVOLUTE) return {z, none};
        if (b.joint == PRISMATIC) return {none, z};
        return {z, all(b.pitch) * z};
    }

    void move(int i, Real q, Real qd) {
        const Body& b = problem.bodies[i];
        Work& w = work[i];
        const Work& p = work[b.parent];
        const double* E = b.rotation;
        Mat R = p.R * Mat{{all(E[0]), all(E[3]), all(E[6])}, {all(E[1]), all(E[4]), all(E[7])}, {all(E[2]), all(E[5]), all(E[8])}};
        w.lever = p.R * broadcast(b.translation);
        if (b.joint != REVOLUTE) w.lever = w.lever + (b.joint == SCREW ? all(b.pitch) * q : q) * R.c;
        if (b.joint != PRISMATIC) {
            Real s, c;
            sin_cos(q, s, c);
            R = {c * R.a + s * R.b, c * R.b - s * R.a, R.c};
        }
        w.R = R;
        const Spatial Sqd = qd * axis_motion(b, R.c);
        w.v = Spatial{p.v.ang, p.v.lin + cross(p.v.ang, w.lever)} + Sqd;
        w.c = {cross(w.v.ang, Sqd.ang), cross(w.v.ang, Sqd.lin) + cross(w.v.lin, Sqd.ang)};
        w.m = all(b.mass);
        w.h = w.m * (R * broadcast(b.cg));
        const Inertia I = rigid(i);
        w.IA = I;
        w.pA = momentum_rate(I, w.v);
    }

    // R I R^T + m (c.c 1 - c c^T), m [c x], m 1
    Inertia rigid(int i) const {
        const Body& b = problem.bodies[i];
        const Work& w = work[i];
        const double* I = b.inertia;
        const Vec h = w.h, c = w.R * broadcast(b.cg);
        const Vec x = all(I[0]) * w.R.a + all(I[1]) * w.R.b + all(I[2]) * w.R.c;
        const Vec y = all(I[1]) * w.R.a + all(I[3]) * w.R.b + all(I[4]) * w.R.c;
        const Vec z = all(I[2]) * w.R.a + all(I[4]) * w.R.b + all(I[5]) * w.R.c;
        const Mat& R = w.R;
        const Real hc = dot(h, c), zero = all(0);
        return {{R.a.x * x.x + R.b.x * y.x + R.c.x * z.x + hc - h.x * c.x,
                 R.a.x * x.y + R.b.x * y.y + R.c.x * z.y - h.x * c.y,
                 R.a.x * x.z + R.b.x * y.z + R.c.x * z.z - h.x * c.z,
                 R.a.y * x.y + R.b.y * y.y + R.c.y * z.y + hc - h.y * c.y,
                 R.a.y * x.z + R.b.y * y.z + R.c.y * z.z - h.y * c.z,
                 R.a.z * x.z + R.b.z * y.z + R.c.z * z.z + hc - h.z * c.z},
                {{zero, h.z, -h.y}, {-h.z, zero, h.x}, {h.y, -h.x, zero}},
                {w.m, zero, zero, w.m, zero, w.m}};
    }

    // v x* I v
    static Spatial momentum_rate(const Inertia& I, Spatial v) {
        const Spatial p = I * v;
        return {cross(v.ang, p.ang) + cross(v.lin, p.lin), cross(v.ang, p.lin)};
    }

    void eliminate(int i, Real tau) {
        const Body& b = problem.bodies[i];
        Work& w = work[i];
        const Spatial S = axis_motion(b, w.R.c);
        w.U = w.IA * S;
        w.Dinv = all(1) / dot(S, w.U);
        w.u = tau - dot(S, w.pA);
        if (b.parent == n) return;
        const Inertia Ia = deflate(w.IA, w.U, w.Dinv);
        const Spatial pa = w.pA + Ia * w.c + (w.Dinv * w.u) * w.U;
        Work& p = work[b.parent];
        p.IA = p.IA + at_lever(Ia, w.lever);
        p.pA = p.pA + Spatial{pa.ang + cross(w.lever, pa.lin), pa.lin};
    }

    void accelerate(int i, Real& qdd) {
        const Body& b = problem.bodies[i];
        Work& w = work[i];
        const Work& p = work[b.parent];
        const Spatial a = Spatial{p.a.ang, p.a.lin + cross(p.a.ang, w.lever)} + w.c;
        qdd = w.Dinv * (w.u - dot(w.U, a));
        w.a = a + qdd * axis_motion(b, w.R.c);
    }
};

// Dormand and Prince (1980); the first six rows of rates give the end of the step, the weights `E` its error.
static const double A[7][6] = {{},
                               {1. / 5},
                               {3. / 40, 9. / 40},
                               {44. / 45, -56. / 15, 32. / 9},
                               {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                               {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                               {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
static const double E[7] = {71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40};

class Motion {
   public:
    explicit Motion(const Problem& problem)
        : p(problem), n(problem.n), chain(problem), y(2 * n), y_new(2 * n), tau(n), rates(7, std::vector<Real>(2 * n)) {}

    // From state y, in equal steps of the classical method of order 4 (Kutta 1901).
    void rk4() {
        const int steps = int(std::ceil(p.duration / p.step * (1 - 1e-12)));
        const Real h = all(p.duration / steps);
        for (int s = 0; s < steps; ++s) {
            rate(y, rates[0]);
            for (int stage = 1; stage < 4; ++stage) {
                const Real part = stage < 3 ? all(0.5) * h : h;
                for (int j = 0; j < 2 * n; ++j) y_new[j] = y[j] + part * rates[stage - 1][j];
                rate(y_new, rates[stage]);
            }
            const Real sixth = h / all(6), third = h / all(3);
            for (int j = 0; j < 2 * n; ++j)
                y[j] += sixth * (rates[0][j] + rates[3][j]) + third * (rates[1][j] + rates[2][j]);
        }
    }

    // From state y at adaptive steps, each lane its own; control after Hairer, Norsett and Wanner (1993), II.4.
    void rk45(int* steps) {
        double t[LANES], h[LANES], before[LANES];
        bool running[LANES], rejected[LANES];
        start(h);
        int left = LANES;
        for (int l = 0; l < LANES; ++l) {
            t[l] = 0, before[l] = 1e-4, running[l] = true, rejected[l] = false, steps[l] = 0;
            h[l] = fitted(h[l], t[l]);
        }
        while (left > 0) {
            Real step;
            for (int l = 0; l < LANES; ++l) lane(step, l) = running[l] ? h[l] : 0;
            for (int stage = 1; stage < 7; ++stage) {
                for (int j = 0; j < 2 * n; ++j) {
                    Real sum = all(A[stage][0]) * rates[0][j];
                    for (int s = 1; s < stage; ++s) sum += all(A[stage][s]) * rates[s][j];
                    y_new[j] = y[j] + step * sum;
                }
                rate(y_new, rates[stage]);
            }
            Real sum = all(0);
            for (int j = 0; j < 2 * n; ++j) {
                Real error = all(E[0]) * rates[0][j];
                for (int s = 2; s < 7; ++s) error += all(E[s]) * rates[s][j];
                sum += square(step * error / scale(y[j], y_new[j]));
            }
            bool accepted[LANES];
            for (int l = 0; l < LANES; ++l) {
                accepted[l] = false;
                if (!running[l]) continue;
                const double error = std::sqrt(lane(sum, l) / (2 * n));
                double factor = 0.2;
                if (error <= 1) {
                    accepted[l] = true;
                    ++steps[l];
                    t[l] = p.duration - t[l] <= h[l] ? p.duration : t[l] + h[l];
                    factor = error == 0 ? 10 : 0.9 * std::pow(error, -(0.2 - 0.03)) * std::pow(before[l], 0.04);
                    factor = std::min(10., std::max(0.2, factor));
                    if (rejected[l]) factor = std::min(factor, 1.);
                    before[l] = std::max(error, 1e-4);
                } else if (error < INFINITY) {
                    factor = std::max(0.2, 0.9 * std::pow(error, -(0.2 - 0.03)));
                }
                rejected[l] = !accepted[l];
                if (t[l] >= p.duration || !(h[l] * factor >= 1e-15 * p.duration)) running[l] = false, --left;
                h[l] = fitted(h[l] * factor, t[l]);
            }
            for (int j = 0; j < 2 * n; ++j)
                for (int l = 0; l < LANES; ++l)
                    if (accepted[l]) lane(y[j], l) = lane(y_new[j], l), lane(rates[0][j], l) = lane(rates[6][j], l);
        }
    }

    const Problem& p;
    const int n;
    Chain chain;
    std::vector<Real> y, y_new, tau;
    std::vector<std::vector<Real>> rates;

   private:
    static Real square(Real x) { return x * x; }

    void rate(const std::vector<Real>& y, std::vector<Real>& rate) {
        std::copy(y.begin() + n, y.end(), rate.begin());
        chain.accelerations(&y[0], &y[n], &tau[0], &rate[n]);
    }

    Real scale(const Real& a, const Real& b) const {
        Real s;
        for (int l = 0; l < LANES; ++l)
            lane(s, l) = p.atol + p.rtol * std::max(std::abs(lane(a, l)), std::abs(lane(b, l)));
        return s;
    }

    double norm(const std::vector<Real>& x, int l) const {
        double sum = 0;
        for (int j = 0; j < 2 * n; ++j) sum += std::pow(lane(x[j], l) / lane(scale(y[j], y[j]), l), 2);
        return std::sqrt(sum / (2 * n));
    }

    double fitted(double h, double t) const {
        const double left = p.duration - t;
        return 1.01 * h >= left ? left : h;
    }

    void start(double* h) {
        rate(y, rates[0]);
        double trial[LANES], first[LANES];
        for (int l = 0; l < LANES; ++l) {
            const double size = norm(y, l);
            first[l] = norm(rates[0], l);
            trial[l] = size < 1e-5 || first[l] < 1e-5 ? 1e-6 : 0.01 * size / first[l];
            for (int j = 0; j < 2 * n; ++j) lane(y_new[j], l) = lane(y[j], l) + trial[l] * lane(rates[0][j], l);
        }
        rate(y_new, rates[1]);
        for (int j = 0; j < 2 * n; ++j) rates[1][j] -= rates[0][j];
        for (int l = 0; l < LANES; ++l) {
            const double largest = std::max(first[l], norm(rates[1], l) / trial[l]);
            h[l] = std::min(100 * trial[l],
                            largest <= 1e-15 ? std::max(1e-6, 1e-3 * trial[l]) : std::pow(0.01 / largest, 0.2));
        }
    }
};

static double number(FILE* file) {
    double x;
    if (std::fscanf(file, "%lf", &x) != 1) std::fprintf(stderr, "the problem file ends too early\n"), std::exit(2);
    return x;
}

static Problem read(const char* path) {
    FILE* file = std::fopen(path, "r");
    if (!file) std::perror(path), std::exit(2);
    Problem p;
    p.n = int(number(file)), p.batch = int(number(file));
    for (double& g : p.gravity) g = number(file);
    p.task = int(number(file)), p.repeats = int(number(file)), p.calls = int(number(file));
    p.duration = number(file), p.step = number(file), p.rtol = number(file), p.atol = number(file);
    p.bodies.resize(p.n);
    for (Body& b : p.bodies) {
        b.parent = int(number(file)), b.joint = int(number(file)), b.pitch = number(file);
        if (b.parent < 0) b.parent = p.n;
        for (double& x : b.translation) x = number(file);
        for (double& x : b.rotation) x = number(file);
        b.mass = number(file);
        for (double& x : b.cg) x = number(file);
        for (double& x : b.inertia) x = number(file);
    }
    for (auto* x : {&p.q, &p.qd, &p.tau}) {
        x->resize(size_t(p.batch) * p.n);
        for (double& value : *x) value = number(file);
    }
    std::fclose(file);
    return p;
}

// The whole batch once; of each chain the row of the result file.
static void solve(const Problem& p, Motion& motion, std::vector<double>& rows, bool check) {
    const int n = p.n, width = p.task == 0 ? n : 2 * n;
    std::vector<Real>& qdd = motion.y_new;
    for (int first = 0; first < p.batch; first += LANES) {
        int steps[LANES] = {};
        for (int l = 0; l < LANES; ++l) {
            const size_t row = size_t(std::min(first + l, p.batch - 1)) * n;
            for (int j = 0; j < n; ++j) {
                lane(motion.y[j], l) = p.q[row + j];
                lane(motion.y[n + j], l) = p.qd[row + j];
                lane(motion.tau[j], l) = p.tau[row + j];
            }
        }
        double last = 0;
        if (p.task == 0) {
            motion.chain.accelerations(&motion.y[0], &motion.y[n], &motion.tau[0], &qdd[0]);
            if (check) last = motion.chain.balance();
        } else if (p.task == 1) {
            motion.rk4();
        } else {
            motion.rk45(steps);
        }
        for (int l = 0; l < LANES && first + l < p.batch; ++l) {
            double* row = &rows[size_t(first + l) * (width + 1)];
            for (int j = 0; j < width; ++j) row[j] = p.task == 0 ? lane(qdd[j], l) : lane(motion.y[j], l);
            row[width] = p.task == 2 ? steps[l] : last;
        }
    }
}

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: chain PROBLEM RESULT\n"), 2;
    const Problem p = read(argv[1]);
    const int width = (p.task == 0 ? p.n : 2 * p.n) + 1;
    std::vector<double> rows(size_t(p.batch) * width);
    Motion motion(p);
    for (int repeat = 0; repeat < p.repeats; ++repeat) {
        const auto started = std::chrono::steady_clock::now();
        for (int call = 0; call < p.calls; ++call) solve(p, motion, rows, false);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
        std::printf("%.9g\n", took.count() / p.calls);
    }
    solve(p, motion, rows, true);
    FILE* file = std::fopen(argv[2], "w");
    if (!file) return std::perror(argv[2]), 2;
    for (int i = 0; i < p.batch; ++i)
        for (int j = 0; j < width; ++j)
            std::fprintf(file, "%.17g%c", rows[size_t(i) * width + j], j + 1 < width ? ' ' : '\n');
    return std::fclose(file);
}
