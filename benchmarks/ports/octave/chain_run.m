function chain_run(problem, result)
% Forward dynamics and motions of batches of serial chains and open trees, after Featherstone (2008), section 7.3.
%
%     octave-cli --path octave --eval "chain_run('PROBLEM', 'RESULT')"        (the two files: ../README.md)
%
% Runs in MATLAB too. Kinematics outwards, articulated inertias inwards, joint dynamics outwards, and the balance of
% forces as their proof. All vectors in world axes; every body's spatial quantities (angular before linear) refer to its
% own joint's origin. The last dimension of every array is the batch: a vector is (6, 1, batch), a matrix (6, 6, batch).

  file = fopen(problem, 'r');
  x = fscanf(file, '%f');
  fclose(file);
  n = x(1); batch = x(2); gravity = x(3:5);
  task = x(6); repeats = x(7); calls = x(8);
  duration = x(9); step = x(10); rtol = x(11); atol = x(12);
  table = reshape(x(13:12 + 25 * n), 25, n);
  for i = 1:n
    b = table(:, i);
    bodies(i) = struct('parent', b(1) + 2, 'joint', b(2), 'pitch', b(3), 'translation', b(4:6), ...
      'rotation', reshape(b(7:15), 3, 3)', 'mass', b(16), 'cg', b(17:19), ...
      'inertia', b([20, 21, 22; 21, 23, 24; 22, 24, 25]));
  end
  states = reshape(x(13 + 25 * n:end), n, batch, 3);
  q = states(:, :, 1); qd = states(:, :, 2); tau = states(:, :, 3);
  for repeat = 1:repeats
    timer = tic;
    for call = 1:calls
      [numbers, last] = solve(bodies, gravity, task, q, qd, tau, duration, step, rtol, atol, false);
    end
    fprintf('%.9g\n', toc(timer) / calls);
  end
  [numbers, last] = solve(bodies, gravity, task, q, qd, tau, duration, step, rtol, atol, true);
  file = fopen(result, 'w');
  fprintf(file, [repmat('%.17g ', 1, size(numbers, 1)), '%.17g\n'], [numbers; last]);
  fclose(file);
end

function [numbers, last] = solve(bodies, gravity, task, q, qd, tau, duration, step, rtol, atol, check)
  last = zeros(1, size(q, 2));
  switch task
    case 0
      if check
        [numbers, last] = accelerations(bodies, gravity, q, qd, tau);
      else
        numbers = accelerations(bodies, gravity, q, qd, tau);
      end
    case 1
      numbers = rk4(@(y) rate(bodies, gravity, y, tau), [q; qd], duration, step);
    otherwise
      [numbers, last] = rk45(@(y, which) rate(bodies, gravity, y, tau(:, which)), [q; qd], duration, rtol, atol);
  end
end

function C = pages(A, B)  % the products A(:, :, b) * B(:, :, b)
  C = A(:, 1, :) .* B(1, :, :);
  for k = 2:size(A, 2)
    C = C + A(:, k, :) .* B(k, :, :);
  end
end

function B = flip_pages(A)
  B = permute(A, [2, 1, 3]);
end

function c = crossed(a, b)
  c = [a(2, 1, :) .* b(3, 1, :) - a(3, 1, :) .* b(2, 1, :)
       a(3, 1, :) .* b(1, 1, :) - a(1, 1, :) .* b(3, 1, :)
       a(1, 1, :) .* b(2, 1, :) - a(2, 1, :) .* b(1, 1, :)];
end

function K = cross_matrix(v)
  zero = zeros(1, 1, size(v, 3));
  K = [zero, -v(3, 1, :), v(2, 1, :); v(3, 1, :), zero, -v(1, 1, :); -v(2, 1, :), v(1, 1, :), zero];
end

function m = cross_motion(v, s)
  w = v(1:3, 1, :);
  m = [crossed(w, s(1:3, 1, :)); crossed(w, s(4:6, 1, :)) + crossed(v(4:6, 1, :), s(1:3, 1, :))];
end

function p = cross_force(v, f)
  w = v(1:3, 1, :);
  p = [crossed(w, f(1:3, 1, :)) + crossed(v(4:6, 1, :), f(4:6, 1, :)); crossed(w, f(4:6, 1, :))];
end

% Accelerations (n, batch) at q, qd, tau (n, batch); largest is what the balance of each chain leaves, if asked for.
function [qdd, largest] = accelerations(bodies, gravity, q, qd, tau)
  n = numel(bodies);
  batch = size(q, 2);
  as_page = @(row) reshape(row, 1, 1, []);
  eyes = repmat(eye(3), 1, 1, batch);
  none = zeros(3, 1, batch);
  R = cell(1, n + 1); v = R; X = R; S = R; c = R; I = R; IA = R; pA = R; U = R; D = R; u = R; a = R;
  R{1} = eyes; v{1} = zeros(6, 1, batch);  % the base comes first
  for i = 1:n
    b = bodies(i);
    Rp = R{b.parent};
    turned = pages(Rp, repmat(b.rotation, 1, 1, batch));
    z = turned(:, 3, :);
    lever = pages(Rp, repmat(b.translation, 1, 1, batch));
    angle = as_page(q(i, :));
    if b.joint ~= 0
      if b.joint == 1, travel = angle; else, travel = b.pitch * angle; end
      lever = lever + travel .* z;
    end
    if b.joint ~= 1
      turned = [cos(angle) .* turned(:, 1, :) + sin(angle) .* turned(:, 2, :), ...
                cos(angle) .* turned(:, 2, :) - sin(angle) .* turned(:, 1, :), z];
    end
    R{i + 1} = turned;
    switch b.joint
      case 0, S{i} = [z; none];
      case 1, S{i} = [none; z];
      otherwise, S{i} = [z; b.pitch * z];
    end
    X{i} = [eyes, zeros(3, 3, batch); -cross_matrix(lever), eyes];
    Sqd = S{i} .* as_page(qd(i, :));
    v{i + 1} = pages(X{i}, v{b.parent}) + Sqd;
    c{i} = cross_motion(v{i + 1}, Sqd);
    arm = cross_matrix(pages(turned, repmat(b.cg, 1, 1, batch)));
    J = pages(pages(turned, repmat(b.inertia, 1, 1, batch)), flip_pages(turned)) - b.mass * pages(arm, arm);
    I{i} = [J, b.mass * arm; -b.mass * arm, b.mass * eyes];
    IA{i} = I{i};
    pA{i} = cross_force(v{i + 1}, pages(I{i}, v{i + 1}));
  end
  for i = n:-1:1
    p = bodies(i).parent - 1;
    U{i} = pages(IA{i}, S{i});
    D{i} = sum(S{i} .* U{i}, 1);
    u{i} = as_page(tau(i, :)) - sum(S{i} .* pA{i}, 1);
    if p > 0
      Ia = IA{i} - pages(U{i}, flip_pages(U{i} ./ D{i}));
      pa = pA{i} + pages(Ia, c{i}) + U{i} .* (u{i} ./ D{i});
      Xt = flip_pages(X{i});
      IA{p} = IA{p} + pages(pages(Xt, Ia), X{i});
      pA{p} = pA{p} + pages(Xt, pa);
    end
  end
  qdd = zeros(n, batch);
  a{1} = repmat([0; 0; 0; -gravity(:)], 1, 1, batch);
  for i = 1:n
    before = pages(X{i}, a{bodies(i).parent}) + c{i};
    qdd(i, :) = (u{i} - sum(U{i} .* before, 1)) ./ D{i};
    a{i + 1} = before + S{i} .* as_page(qdd(i, :));
  end
  if nargout > 1
    handed = repmat({zeros(6, 1, batch)}, 1, n + 1);
    largest = zeros(1, batch);
    for i = n:-1:1
      f = pages(IA{i}, a{i + 1}) + pA{i};
      left = f - pages(I{i}, a{i + 1}) - cross_force(v{i + 1}, pages(I{i}, v{i + 1})) - handed{i + 1};
      largest = max(largest, reshape(max(abs(left), [], 1), 1, batch));
      handed{bodies(i).parent} = handed{bodies(i).parent} + pages(flip_pages(X{i}), f);
    end
  end
end

function dy = rate(bodies, gravity, y, tau)
  n = size(tau, 1);
  dy = [y(n + 1:end, :); accelerations(bodies, gravity, y(1:n, :), y(n + 1:end, :), tau)];
end

function y = rk4(f, y, duration, step)  % equal steps of the classical method of order 4 (Kutta 1901)
  steps = ceil(duration / step * (1 - 1e-12));
  h = duration / steps;
  for s = 1:steps
    k1 = f(y);
    k2 = f(y + h / 2 * k1);
    k3 = f(y + h / 2 * k2);
    k4 = f(y + h * k3);
    y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  end
end

% Every chain at its own steps: Dormand and Prince (1980), control after Hairer, Norsett and Wanner (1993), II.4.
function [y, steps] = rk45(f, y, duration, rtol, atol)
  A = [1/5, 0, 0, 0, 0, 0
       3/40, 9/40, 0, 0, 0, 0
       44/45, -56/15, 32/9, 0, 0, 0
       19372/6561, -25360/2187, 64448/6561, -212/729, 0, 0
       9017/3168, -355/33, 46732/5247, 49/176, -5103/18656, 0
       35/384, 0, 500/1113, 125/192, -2187/6784, 11/84];
  E = [71/57600, 0, -71/16695, 71/1920, -17253/339200, 22/525, -1/40];
  norm_of = @(x, scale) sqrt(mean((x ./ (atol + rtol * scale)) .^ 2, 1));
  batch = size(y, 2);
  first = f(y, 1:batch);
  extent = norm_of(y, abs(y));
  speed = norm_of(first, abs(y));
  trial = 0.01 * extent ./ speed;
  trial(extent < 1e-5 | speed < 1e-5) = 1e-6;
  largest = max(speed, norm_of(f(y + trial .* first, 1:batch) - first, abs(y)) ./ trial);
  h = (0.01 ./ largest) .^ 0.2;
  h(largest <= 1e-15) = max(1e-6, 1e-3 * trial(largest <= 1e-15));
  h = min(100 * trial, h);
  t = zeros(1, batch); before = 1e-4 * ones(1, batch); rejected = false(1, batch); steps = t;
  h(1.01 * h >= duration) = duration;
  running = 1:batch;
  while ~isempty(running)
    start = y(:, running);
    step = h(running);
    rates = cell(1, 7);
    rates{1} = first(:, running);
    for s = 1:6
      total = A(s, 1) * rates{1};
      for j = 2:s, total = total + A(s, j) * rates{j}; end
      stage = start + step .* total;
      rates{s + 1} = f(stage, running);
    end
    total = E(1) * rates{1};
    for j = 3:7, total = total + E(j) * rates{j}; end
    error_size = norm_of(step .* total, max(abs(start), abs(stage)));
    accepted = error_size <= 1;
    i = running(accepted);
    y(:, i) = stage(:, accepted);
    first(:, i) = rates{7}(:, accepted);
    steps(i) = steps(i) + 1;
    ends = duration - t(i) <= h(i);
    t(i) = t(i) + h(i);
    t(i(ends)) = duration;
    factor = 0.9 * error_size .^ -0.17;
    most = 10 * ones(size(running));
    most(rejected(running)) = 1;
    grown = min(most, max(0.2, factor .* before(running) .^ 0.04));
    factor = max(0.2, factor);
    factor(accepted) = grown(accepted);
    factor(~isfinite(error_size)) = 0.2;
    before(i) = max(error_size(accepted), 1e-4);
    rejected(running) = ~accepted;
    h(running) = h(running) .* factor;
    left = duration - t(running);
    going = left > 0 & h(running) >= 1e-15 * duration;
    last = 1.01 * h(running) >= left;
    h(running(last)) = left(last);
    running = running(going);
  end
end
