// Forward dynamics and motions of batches of serial chains and open trees, after Featherstone (2008), section 7.3:
// kinematics outwards, articulated inertias inwards, joint dynamics outwards; and the balance of forces as their proof.
// All vectors in world axes; every body's spatial quantities refer to its own joint's origin.
//
//     Chain PROBLEM RESULT        (the two files: ../README.md)

using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Text;

struct Vec
{
    public double X, Y, Z;

    public Vec(double x, double y, double z) { X = x; Y = y; Z = z; }

    public static Vec operator +(Vec a, Vec b) => new Vec(a.X + b.X, a.Y + b.Y, a.Z + b.Z);
    public static Vec operator -(Vec a, Vec b) => new Vec(a.X - b.X, a.Y - b.Y, a.Z - b.Z);
    public static Vec operator *(double s, Vec a) => new Vec(s * a.X, s * a.Y, s * a.Z);
    public static double Dot(Vec a, Vec b) => a.X * b.X + a.Y * b.Y + a.Z * b.Z;
    public static Vec Cross(Vec a, Vec b) =>
        new Vec(a.Y * b.Z - a.Z * b.Y, a.Z * b.X - a.X * b.Z, a.X * b.Y - a.Y * b.X);
    public double Largest() => Math.Max(Math.Abs(X), Math.Max(Math.Abs(Y), Math.Abs(Z)));
}

struct Mat // by columns
{
    public Vec A, B, C;

    public Mat(Vec a, Vec b, Vec c) { A = a; B = b; C = c; }

    public static Vec operator *(in Mat m, Vec v) => new Vec(
        m.A.X * v.X + m.B.X * v.Y + m.C.X * v.Z,
        m.A.Y * v.X + m.B.Y * v.Y + m.C.Y * v.Z,
        m.A.Z * v.X + m.B.Z * v.Y + m.C.Z * v.Z);
    public Vec TransposedTimes(Vec v) => new Vec(Vec.Dot(A, v), Vec.Dot(B, v), Vec.Dot(C, v));
}

struct Sym
{
    public double XX, XY, XZ, YY, YZ, ZZ;

    public Sym(double xx, double xy, double xz, double yy, double yz, double zz)
    {
        XX = xx; XY = xy; XZ = xz; YY = yy; YZ = yz; ZZ = zz;
    }

    public static Vec operator *(in Sym s, Vec v) => new Vec(
        s.XX * v.X + s.XY * v.Y + s.XZ * v.Z, s.XY * v.X + s.YY * v.Y + s.YZ * v.Z,
        s.XZ * v.X + s.YZ * v.Y + s.ZZ * v.Z);

    public void Add(in Sym s)
    {
        XX += s.XX; XY += s.XY; XZ += s.XZ; YY += s.YY; YZ += s.YZ; ZZ += s.ZZ;
    }

    // Less d u u^T.
    public Sym Less(double d, Vec u)
    {
        double x = d * u.X, y = d * u.Y, z = d * u.Z;
        return new Sym(XX - x * u.X, XY - x * u.Y, XZ - x * u.Z, YY - y * u.Y, YZ - y * u.Z, ZZ - z * u.Z);
    }
}

struct Spatial // a motion (angular and linear velocity) or a force (moment and force)
{
    public Vec Ang, Lin;

    public Spatial(Vec ang, Vec lin) { Ang = ang; Lin = lin; }

    public static Spatial operator +(in Spatial a, in Spatial b) => new Spatial(a.Ang + b.Ang, a.Lin + b.Lin);
    public static Spatial operator -(in Spatial a, in Spatial b) => new Spatial(a.Ang - b.Ang, a.Lin - b.Lin);
    public static Spatial operator *(double s, in Spatial a) => new Spatial(s * a.Ang, s * a.Lin);
    public static double Dot(in Spatial a, in Spatial b) => Vec.Dot(a.Ang, b.Ang) + Vec.Dot(a.Lin, b.Lin);
}

struct Inertia // [[J, H], [H^T, M]]
{
    public Sym J, M;
    public Mat H;

    public static Spatial operator *(in Inertia I, in Spatial v) =>
        new Spatial(I.J * v.Ang + I.H * v.Lin, I.H.TransposedTimes(v.Ang) + I.M * v.Lin);

    public void Add(in Inertia other)
    {
        J.Add(other.J);
        M.Add(other.M);
        H = new Mat(H.A + other.H.A, H.B + other.H.B, H.C + other.H.C);
    }

    // Less d U U^T.
    public Inertia Deflated(in Spatial U, double d)
    {
        Vec w = d * U.Ang;
        return new Inertia
        {
            J = J.Less(d, U.Ang),
            M = M.Less(d, U.Lin),
            H = new Mat(H.A - U.Lin.X * w, H.B - U.Lin.Y * w, H.C - U.Lin.Z * w),
        };
    }

    // The same inertia, about a point that lies r back.
    public Inertia AtLever(Vec r)
    {
        Mat K = new Mat(
            H.A + Vec.Cross(r, new Vec(M.XX, M.XY, M.XZ)),
            H.B + Vec.Cross(r, new Vec(M.XY, M.YY, M.YZ)),
            H.C + Vec.Cross(r, new Vec(M.XZ, M.YZ, M.ZZ)));
        // J' = J + [r x] H'^T + ([r x] H^T)^T, by the rows of H' and H
        Vec x = Vec.Cross(r, new Vec(K.A.X, K.B.X, K.C.X)), y = Vec.Cross(r, new Vec(K.A.Y, K.B.Y, K.C.Y));
        Vec z = Vec.Cross(r, new Vec(K.A.Z, K.B.Z, K.C.Z));
        Vec p = Vec.Cross(r, new Vec(H.A.X, H.B.X, H.C.X)), q = Vec.Cross(r, new Vec(H.A.Y, H.B.Y, H.C.Y));
        Vec s = Vec.Cross(r, new Vec(H.A.Z, H.B.Z, H.C.Z));
        return new Inertia
        {
            H = K,
            M = M,
            J = new Sym(
                J.XX + x.X + p.X, J.XY + y.X + p.Y, J.XZ + z.X + p.Z, J.YY + y.Y + q.Y, J.YZ + z.Y + q.Z,
                J.ZZ + z.Z + s.Z),
        };
    }
}

enum Joint { Revolute, Prismatic, Screw }

sealed class Body
{
    public int Parent; // the number of bodies for the base
    public Joint Joint;
    public double Pitch, Mass;
    public Vec Translation, Cg;
    public Mat Rotation; // the joint's axis is z of the body's frame
    public Sym Inertia;

    // What the sweeps leave for one another.
    public Mat R;
    public Vec Lever;
    public Spatial V, Bias, A, PA, U;
    public Inertia Rigid, IA;
    public double Dinv, Force;

    public Spatial AxisMotion()
    {
        switch (Joint)
        {
            case Joint.Revolute: return new Spatial(R.C, default(Vec));
            case Joint.Prismatic: return new Spatial(default(Vec), R.C);
            default: return new Spatial(R.C, Pitch * R.C);
        }
    }

    public void Move(Body parent, double q, double qd)
    {
        ref Mat P = ref parent.R;
        Mat turned = new Mat(P * Rotation.A, P * Rotation.B, P * Rotation.C);
        Lever = P * Translation;
        if (Joint != Joint.Revolute) Lever = Lever + (Joint == Joint.Screw ? Pitch * q : q) * turned.C;
        if (Joint == Joint.Prismatic) R = turned;
        else
        {
            double s = Math.Sin(q), c = Math.Cos(q);
            R = new Mat(c * turned.A + s * turned.B, c * turned.B - s * turned.A, turned.C);
        }
        Spatial Sqd = qd * AxisMotion();
        V = new Spatial(parent.V.Ang + Sqd.Ang, parent.V.Lin + Vec.Cross(parent.V.Ang, Lever) + Sqd.Lin);
        Bias = new Spatial(Vec.Cross(V.Ang, Sqd.Ang), Vec.Cross(V.Ang, Sqd.Lin) + Vec.Cross(V.Lin, Sqd.Ang));
        SetRigid();
        IA = Rigid;
        PA = MomentumRate();
    }

    // R I R^T + m (c.c 1 - c c^T), m [c x], m 1
    void SetRigid()
    {
        Vec c = R * Cg, h = Mass * c;
        double hc = Vec.Dot(h, c);
        Vec x = Inertia.XX * R.A + Inertia.XY * R.B + Inertia.XZ * R.C;
        Vec y = Inertia.XY * R.A + Inertia.YY * R.B + Inertia.YZ * R.C;
        Vec z = Inertia.XZ * R.A + Inertia.YZ * R.B + Inertia.ZZ * R.C;
        Rigid.J = new Sym(
            R.A.X * x.X + R.B.X * y.X + R.C.X * z.X + hc - h.X * c.X,
            R.A.X * x.Y + R.B.X * y.Y + R.C.X * z.Y - h.X * c.Y,
            R.A.X * x.Z + R.B.X * y.Z + R.C.X * z.Z - h.X * c.Z,
            R.A.Y * x.Y + R.B.Y * y.Y + R.C.Y * z.Y + hc - h.Y * c.Y,
            R.A.Y * x.Z + R.B.Y * y.Z + R.C.Y * z.Z - h.Y * c.Z,
            R.A.Z * x.Z + R.B.Z * y.Z + R.C.Z * z.Z + hc - h.Z * c.Z);
        Rigid.H = new Mat(new Vec(0, h.Z, -h.Y), new Vec(-h.Z, 0, h.X), new Vec(h.Y, -h.X, 0));
        Rigid.M = new Sym(Mass, 0, 0, Mass, 0, Mass);
    }

    // v x* I v
    public Spatial MomentumRate()
    {
        Spatial p = Rigid * V;
        return new Spatial(Vec.Cross(V.Ang, p.Ang) + Vec.Cross(V.Lin, p.Lin), Vec.Cross(V.Ang, p.Lin));
    }

    public void Eliminate(double tau, Body parent) // parent: null at the root
    {
        Spatial S = AxisMotion();
        U = IA * S;
        Dinv = 1 / Spatial.Dot(S, U);
        Force = tau - Spatial.Dot(S, PA);
        if (parent == null) return;
        Inertia Ia = IA.Deflated(U, Dinv);
        Spatial pa = PA + Ia * Bias + (Dinv * Force) * U;
        parent.IA.Add(Ia.AtLever(Lever));
        parent.PA = parent.PA + new Spatial(pa.Ang + Vec.Cross(Lever, pa.Lin), pa.Lin);
    }

    public double Accelerate(Body parent)
    {
        Spatial a = new Spatial(parent.A.Ang, parent.A.Lin + Vec.Cross(parent.A.Ang, Lever)) + Bias;
        double qdd = Dinv * (Force - Spatial.Dot(U, a));
        A = a + qdd * AxisMotion();
        return qdd;
    }
}

sealed class Chain
{
    readonly Body[] bodies;
    readonly int n;

    public Chain(Body[] bodiesAndBase, Vec gravity)
    {
        bodies = bodiesAndBase;
        n = bodies.Length - 1;
        bodies[n].R = new Mat(new Vec(1, 0, 0), new Vec(0, 1, 0), new Vec(0, 0, 1));
        bodies[n].A = new Spatial(default(Vec), -1 * gravity);
    }

    public void Accelerations(double[] y, double[] tau, double[] rate) // rate = (qd, qdd) at y = (q, qd)
    {
        for (int i = 0; i < n; ++i) bodies[i].Move(bodies[bodies[i].Parent], y[i], y[n + i]);
        for (int i = n - 1; i >= 0; --i)
            bodies[i].Eliminate(tau[i], bodies[i].Parent == n ? null : bodies[bodies[i].Parent]);
        for (int i = 0; i < n; ++i)
        {
            rate[i] = y[n + i];
            rate[n + i] = bodies[i].Accelerate(bodies[bodies[i].Parent]);
        }
    }

    // Largest moment or force left in any body's balance, after Accelerations.
    public double Balance()
    {
        var handed = new Spatial[n + 1];
        double largest = 0;
        for (int i = n - 1; i >= 0; --i)
        {
            Body b = bodies[i];
            Spatial f = b.IA * b.A + b.PA, left = f - (b.Rigid * b.A + b.MomentumRate()) - handed[i];
            largest = Math.Max(largest, Math.Max(left.Ang.Largest(), left.Lin.Largest()));
            handed[b.Parent] = handed[b.Parent] + new Spatial(f.Ang + Vec.Cross(b.Lever, f.Lin), f.Lin);
        }
        return largest;
    }
}

sealed class Motion
{
    // Dormand and Prince (1980); E weighs the rates into the error.
    static readonly double[][] A =
    {
        new double[0], new[] { 1.0 / 5 }, new[] { 3.0 / 40, 9.0 / 40 }, new[] { 44.0 / 45, -56.0 / 15, 32.0 / 9 },
        new[] { 19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729 },
        new[] { 9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656 },
        new[] { 35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84 },
    };
    static readonly double[] E =
        { 71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40 };

    readonly Chain chain;
    readonly int m;
    readonly double[] tau, stage;
    readonly double[][] k;
    public double[] Y;

    public Motion(Chain chain, double[] y, double[] tau)
    {
        this.chain = chain;
        this.tau = tau;
        Y = y;
        m = y.Length;
        stage = new double[m];
        k = new double[7][];
        for (int s = 0; s < 7; ++s) k[s] = new double[m];
    }

    // Equal steps of the classical method of order 4 (Kutta 1901).
    public void Rk4(double duration, double step)
    {
        int steps = (int)Math.Ceiling(duration / step * (1 - 1e-12));
        double h = duration / steps;
        for (int s = 0; s < steps; ++s)
        {
            chain.Accelerations(Y, tau, k[0]);
            for (int i = 1; i < 4; ++i)
            {
                double part = i < 3 ? h / 2 : h;
                for (int j = 0; j < m; ++j) stage[j] = Y[j] + part * k[i - 1][j];
                chain.Accelerations(stage, tau, k[i]);
            }
            for (int j = 0; j < m; ++j) Y[j] += h / 6 * (k[0][j] + 2 * k[1][j] + 2 * k[2][j] + k[3][j]);
        }
    }

    // Adaptive steps; control after Hairer, Norsett and Wanner (1993), II.4. Returns the number of steps taken.
    public int Rk45(double duration, double rtol, double atol)
    {
        double h = FirstStep(rtol, atol), t = 0, before = 1e-4;
        bool rejected = false;
        int steps = 0;
        if (1.01 * h >= duration) h = duration;
        while (true)
        {
            for (int s = 1; s < 7; ++s)
            {
                double[] row = A[s];
                for (int j = 0; j < m; ++j)
                {
                    double sum = 0;
                    for (int i = 0; i < s; ++i) sum += row[i] * k[i][j];
                    stage[j] = Y[j] + h * sum;
                }
                chain.Accelerations(stage, tau, k[s]);
            }
            double squares = 0;
            for (int j = 0; j < m; ++j)
            {
                double sum = 0;
                for (int i = 0; i < 7; ++i) sum += E[i] * k[i][j];
                double ratio = h * sum / (atol + rtol * Math.Max(Math.Abs(Y[j]), Math.Abs(stage[j])));
                squares += ratio * ratio;
            }
            double error = Math.Sqrt(squares / m), factor = 0.2;
            if (error <= 1)
            {
                ++steps;
                t = duration - t <= h ? duration : t + h;
                Array.Copy(stage, Y, m);
                Array.Copy(k[6], k[0], m);
                factor = error == 0 ? 10 : 0.9 * Math.Pow(error, -0.17) * Math.Pow(before, 0.04);
                factor = Math.Min(rejected ? 1 : 10, Math.Max(0.2, factor));
                before = Math.Max(error, 1e-4);
                rejected = false;
            }
            else
            {
                if (error < double.PositiveInfinity) factor = Math.Max(0.2, 0.9 * Math.Pow(error, -0.17));
                rejected = true;
            }
            if (t >= duration || !(h * factor >= 1e-15 * duration)) return steps;
            h *= factor;
            if (1.01 * h >= duration - t) h = duration - t;
        }
    }

    double Norm(double[] x, double rtol, double atol)
    {
        double squares = 0;
        for (int j = 0; j < m; ++j) squares += Math.Pow(x[j] / (atol + rtol * Math.Abs(Y[j])), 2);
        return Math.Sqrt(squares / m);
    }

    double FirstStep(double rtol, double atol)
    {
        chain.Accelerations(Y, tau, k[0]);
        double extent = Norm(Y, rtol, atol), first = Norm(k[0], rtol, atol);
        double trial = extent < 1e-5 || first < 1e-5 ? 1e-6 : 0.01 * extent / first;
        for (int j = 0; j < m; ++j) stage[j] = Y[j] + trial * k[0][j];
        chain.Accelerations(stage, tau, k[1]);
        for (int j = 0; j < m; ++j) k[1][j] -= k[0][j];
        double largest = Math.Max(first, Norm(k[1], rtol, atol) / trial);
        return Math.Min(100 * trial, largest <= 1e-15 ? Math.Max(1e-6, 1e-3 * trial) : Math.Pow(0.01 / largest, 0.2));
    }
}

static class Program
{
    static string[] words;
    static int next;

    static double Number() => double.Parse(words[next++], CultureInfo.InvariantCulture);
    static Vec Vector() => new Vec(Number(), Number(), Number());

    static int Main(string[] arguments)
    {
        if (arguments.Length != 2)
        {
            Console.Error.WriteLine("usage: Chain PROBLEM RESULT");
            return 2;
        }
        words = File.ReadAllText(arguments[0]).Split((char[])null, StringSplitOptions.RemoveEmptyEntries);
        int n = (int)Number(), batch = (int)Number();
        Vec gravity = Vector();
        int task = (int)Number(), repeats = (int)Number(), calls = (int)Number();
        double duration = Number(), step = Number(), rtol = Number(), atol = Number();
        var bodies = new Body[n + 1];
        for (int i = 0; i < n; ++i)
        {
            var b = new Body { Parent = (int)Number(), Joint = (Joint)(int)Number(), Pitch = Number() };
            if (b.Parent < 0) b.Parent = n;
            b.Translation = Vector();
            Vec r1 = Vector(), r2 = Vector(), r3 = Vector();
            b.Rotation = new Mat(new Vec(r1.X, r2.X, r3.X), new Vec(r1.Y, r2.Y, r3.Y), new Vec(r1.Z, r2.Z, r3.Z));
            b.Mass = Number();
            b.Cg = Vector();
            b.Inertia = new Sym(Number(), Number(), Number(), Number(), Number(), Number());
            bodies[i] = b;
        }
        bodies[n] = new Body();
        double[][] states = new double[3][];
        for (int s = 0; s < 3; ++s)
        {
            states[s] = new double[batch * n];
            for (int i = 0; i < batch * n; ++i) states[s][i] = Number();
        }
        var chain = new Chain(bodies, gravity);
        int width = task == 0 ? n : 2 * n;
        double[] y = new double[2 * n], tau = new double[n], rate = new double[2 * n];
        double[] rows = new double[batch * (width + 1)];
        var motion = new Motion(chain, y, tau);
        Action<bool> solve = check => // the whole batch once
        {
            for (int i = 0; i < batch; ++i)
            {
                Array.Copy(states[0], i * n, y, 0, n);
                Array.Copy(states[1], i * n, y, n, n);
                Array.Copy(states[2], i * n, tau, 0, n);
                double last = 0;
                if (task == 0)
                {
                    chain.Accelerations(y, tau, rate);
                    if (check) last = chain.Balance();
                }
                else if (task == 1) motion.Rk4(duration, step);
                else last = motion.Rk45(duration, rtol, atol);
                Array.Copy(task == 0 ? rate : y, task == 0 ? n : 0, rows, i * (width + 1), width);
                rows[i * (width + 1) + width] = last;
            }
        };
        for (int repeat = 0; repeat < repeats; ++repeat)
        {
            var watch = Stopwatch.StartNew();
            for (int call = 0; call < calls; ++call) solve(false);
            Console.WriteLine((watch.Elapsed.TotalSeconds / calls).ToString("R", CultureInfo.InvariantCulture));
        }
        solve(true);
        var text = new StringBuilder();
        for (int i = 0; i < batch; ++i)
            for (int j = 0; j <= width; ++j)
                text.Append(rows[i * (width + 1) + j].ToString("R", CultureInfo.InvariantCulture))
                    .Append(j < width ? ' ' : '\n');
        File.WriteAllText(arguments[1], text.ToString());
        return 0;
    }
}
