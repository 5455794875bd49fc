! Forward dynamics and motions of batches of serial chains and open trees, after Featherstone (2008), section 7.3:
! kinematics outwards, articulated inertias inwards, joint dynamics outwards; and the balance of forces as their proof.
! All vectors in world axes; every body's spatial quantities refer to its own joint's origin.
!
!     chain PROBLEM RESULT        (the two files: ../README.md)

module spatial
   implicit none
   integer, parameter :: dp = selected_real_kind(15, 300)

   type :: motion  ! a velocity or an acceleration; as a force, moment and force
      real(dp) :: ang(3), lin(3)
   end type

   type :: articulated  ! [[J, H], [transpose(H), M]]; of the symmetric J and M the numbers xx xy xz yy yz zz
      real(dp) :: J(6), H(3, 3), M(6)
   end type

contains

   pure function cross(a, b) result(c)
      real(dp), intent(in) :: a(3), b(3)
      real(dp) :: c(3)
      c(1) = a(2)*b(3) - a(3)*b(2)
      c(2) = a(3)*b(1) - a(1)*b(3)
      c(3) = a(1)*b(2) - a(2)*b(1)
   end function

   pure function times(A, v) result(w)
      real(dp), intent(in) :: A(3, 3), v(3)
      real(dp) :: w(3)
      w = A(:, 1)*v(1) + A(:, 2)*v(2) + A(:, 3)*v(3)
   end function

   pure function transposed_times(A, v) result(w)
      real(dp), intent(in) :: A(3, 3), v(3)
      real(dp) :: w(3)
      w(1) = A(1, 1)*v(1) + A(2, 1)*v(2) + A(3, 1)*v(3)
      w(2) = A(1, 2)*v(1) + A(2, 2)*v(2) + A(3, 2)*v(3)
      w(3) = A(1, 3)*v(1) + A(2, 3)*v(2) + A(3, 3)*v(3)
   end function

   pure function symmetric_times(S, v) result(w)
      real(dp), intent(in) :: S(6), v(3)
      real(dp) :: w(3)
      w(1) = S(1)*v(1) + S(2)*v(2) + S(3)*v(3)
      w(2) = S(2)*v(1) + S(4)*v(2) + S(5)*v(3)
      w(3) = S(3)*v(1) + S(5)*v(2) + S(6)*v(3)
   end function

   pure function square(u) result(S)  ! u u^T
      real(dp), intent(in) :: u(3)
      real(dp) :: S(6)
      S = [u(1)*u(1), u(1)*u(2), u(1)*u(3), u(2)*u(2), u(2)*u(3), u(3)*u(3)]
   end function

   pure function inertia_times(I, v) result(f)
      type(articulated), intent(in) :: I
      type(motion), intent(in) :: v
      type(motion) :: f
      f%ang = symmetric_times(I%J, v%ang) + times(I%H, v%lin)
      f%lin = transposed_times(I%H, v%ang) + symmetric_times(I%M, v%lin)
   end function

   pure function power(f, v) result(p)
      type(motion), intent(in) :: f, v
      real(dp) :: p
      p = f%ang(1)*v%ang(1) + f%ang(2)*v%ang(2) + f%ang(3)*v%ang(3) &
          + f%lin(1)*v%lin(1) + f%lin(2)*v%lin(2) + f%lin(3)*v%lin(3)
   end function

   pure function at_lever(I, r) result(K)  ! the same inertia, about a point that lies r back
      type(articulated), intent(in) :: I
      real(dp), intent(in) :: r(3)
      type(articulated) :: K
      real(dp) :: x(3), y(3), z(3), p(3), q(3), s(3)
      K%M = I%M
      K%H(:, 1) = I%H(:, 1) + cross(r, [I%M(1), I%M(2), I%M(3)])
      K%H(:, 2) = I%H(:, 2) + cross(r, [I%M(2), I%M(4), I%M(5)])
      K%H(:, 3) = I%H(:, 3) + cross(r, [I%M(3), I%M(5), I%M(6)])
      ! J' = J + [r x] H'^T + ([r x] H^T)^T, by the rows of H' and H
      x = cross(r, K%H(1, :)); y = cross(r, K%H(2, :)); z = cross(r, K%H(3, :))
      p = cross(r, I%H(1, :)); q = cross(r, I%H(2, :)); s = cross(r, I%H(3, :))
      K%J = I%J + [x(1) + p(1), y(1) + p(2), z(1) + p(3), y(2) + q(2), z(2) + q(3), z(3) + s(3)]
   end function

end module

module chains
   use spatial
   implicit none
   integer, parameter :: revolute = 0, prismatic = 1, screw = 2

   type :: body
      integer :: parent, joint
      real(dp) :: pitch, translation(3), rotation(3, 3), mass, cg(3), inertia(6)  ! the axis is z of the body's frame
   end type

   type :: worker  ! what the sweeps leave for one another about a body
      real(dp) :: R(3, 3), lever(3), Dinv, u
      type(motion) :: v, c, a, pA, U_joint
      type(articulated) :: rigid, IA
   end type

   type :: chain
      integer :: n
      real(dp) :: gravity(3)
      type(body), allocatable :: bodies(:)
      type(worker), allocatable :: work(:)  ! from 0, which is the base
   end type

contains

   subroutine start(c)
      type(chain), intent(inout) :: c
      allocate (c%work(0:c%n))
      associate (base => c%work(0))
         base%R = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])
         base%v = motion(0, 0)
         base%a = motion(0, -c%gravity)
      end associate
   end subroutine

   subroutine accelerations(c, q, qd, tau, qdd)
      type(chain), intent(inout) :: c
      real(dp), intent(in) :: q(:), qd(:), tau(:)
      real(dp), intent(out) :: qdd(:)
      integer :: i
      do i = 1, c%n
         call move(c%bodies(i), c%work(c%bodies(i)%parent), q(i), qd(i), c%work(i))
      end do
      do i = c%n, 1, -1
         call eliminate(c%bodies(i), tau(i), c%work(i), c%work(c%bodies(i)%parent))
      end do
      do i = 1, c%n
         call accelerate(c%bodies(i), c%work(c%bodies(i)%parent), c%work(i), qdd(i))
      end do
   end subroutine

   pure function axis_motion(b, z) result(S)
      type(body), intent(in) :: b
      real(dp), intent(in) :: z(3)
      type(motion) :: S
      select case (b%joint)
      case (revolute); S = motion(z, 0)
      case (prismatic); S = motion(0, z)
      case default; S = motion(z, b%pitch*z)
      end select
   end function

   pure subroutine move(b, p, q, qd, w)
      type(body), intent(in) :: b
      type(worker), intent(in) :: p
      real(dp), intent(in) :: q, qd
      type(worker), intent(inout) :: w
      real(dp) :: R(3, 3), s, c
      type(motion) :: Sqd
      R(:, 1) = times(p%R, b%rotation(:, 1))
      R(:, 2) = times(p%R, b%rotation(:, 2))
      R(:, 3) = times(p%R, b%rotation(:, 3))
      w%lever = times(p%R, b%translation)
      if (b%joint == prismatic) w%lever = w%lever + q*R(:, 3)
      if (b%joint == screw) w%lever = w%lever + b%pitch*q*R(:, 3)
      if (b%joint == prismatic) then
         w%R = R
      else
         s = sin(q); c = cos(q)
         w%R(:, 1) = c*R(:, 1) + s*R(:, 2)
         w%R(:, 2) = c*R(:, 2) - s*R(:, 1)
         w%R(:, 3) = R(:, 3)
      end if
      Sqd = axis_motion(b, w%R(:, 3))
      Sqd%ang = qd*Sqd%ang; Sqd%lin = qd*Sqd%lin
      w%v%ang = p%v%ang + Sqd%ang
      w%v%lin = p%v%lin + cross(p%v%ang, w%lever) + Sqd%lin
      w%c%ang = cross(w%v%ang, Sqd%ang)
      w%c%lin = cross(w%v%ang, Sqd%lin) + cross(w%v%lin, Sqd%ang)
      w%rigid = rigid_inertia(b, w%R)
      w%IA = w%rigid
      w%pA = momentum_rate(w%rigid, w%v)
   end subroutine

   pure function rigid_inertia(b, R) result(I)  ! R I R^T + m (c.c 1 - c c^T), m [c x], m 1
      type(body), intent(in) :: b
      real(dp), intent(in) :: R(3, 3)
      type(articulated) :: I
      real(dp) :: c(3), h(3), x(3), y(3), z(3), hc
      c = times(R, b%cg)
      h = b%mass*c
      hc = h(1)*c(1) + h(2)*c(2) + h(3)*c(3)
      x = b%inertia(1)*R(:, 1) + b%inertia(2)*R(:, 2) + b%inertia(3)*R(:, 3)
      y = b%inertia(2)*R(:, 1) + b%inertia(4)*R(:, 2) + b%inertia(5)*R(:, 3)
      z = b%inertia(3)*R(:, 1) + b%inertia(5)*R(:, 2) + b%inertia(6)*R(:, 3)
      I%J(1) = R(1, 1)*x(1) + R(1, 2)*y(1) + R(1, 3)*z(1) + hc - h(1)*c(1)
      I%J(2) = R(1, 1)*x(2) + R(1, 2)*y(2) + R(1, 3)*z(2) - h(1)*c(2)
      I%J(3) = R(1, 1)*x(3) + R(1, 2)*y(3) + R(1, 3)*z(3) - h(1)*c(3)
      I%J(4) = R(2, 1)*x(2) + R(2, 2)*y(2) + R(2, 3)*z(2) + hc - h(2)*c(2)
      I%J(5) = R(2, 1)*x(3) + R(2, 2)*y(3) + R(2, 3)*z(3) - h(2)*c(3)
      I%J(6) = R(3, 1)*x(3) + R(3, 2)*y(3) + R(3, 3)*z(3) + hc - h(3)*c(3)
      I%H(:, 1) = [0.0_dp, h(3), -h(2)]
      I%H(:, 2) = [-h(3), 0.0_dp, h(1)]
      I%H(:, 3) = [h(2), -h(1), 0.0_dp]
      I%M = [b%mass, 0.0_dp, 0.0_dp, b%mass, 0.0_dp, b%mass]
   end function

   pure function momentum_rate(I, v) result(p)  ! v x* I v
      type(articulated), intent(in) :: I
      type(motion), intent(in) :: v
      type(motion) :: p, L
      L = inertia_times(I, v)
      p%ang = cross(v%ang, L%ang) + cross(v%lin, L%lin)
      p%lin = cross(v%ang, L%lin)
   end function

   pure subroutine eliminate(b, tau, w, p)
      type(body), intent(in) :: b
      real(dp), intent(in) :: tau
      type(worker), intent(inout) :: w, p
      type(articulated) :: Ia
      type(motion) :: S, f, pa
      real(dp) :: dU(3)
      S = axis_motion(b, w%R(:, 3))
      w%U_joint = inertia_times(w%IA, S)
      w%Dinv = 1/power(w%U_joint, S)
      w%u = tau - power(w%pA, S)
      if (b%parent == 0) return
      associate (U => w%U_joint)
         dU = w%Dinv*U%ang
         Ia%J = w%IA%J - w%Dinv*square(U%ang)
         Ia%H(:, 1) = w%IA%H(:, 1) - dU*U%lin(1)
         Ia%H(:, 2) = w%IA%H(:, 2) - dU*U%lin(2)
         Ia%H(:, 3) = w%IA%H(:, 3) - dU*U%lin(3)
         Ia%M = w%IA%M - w%Dinv*square(U%lin)
         f = inertia_times(Ia, w%c)
         pa%ang = w%pA%ang + f%ang + w%Dinv*w%u*U%ang
         pa%lin = w%pA%lin + f%lin + w%Dinv*w%u*U%lin
      end associate
      Ia = at_lever(Ia, w%lever)
      p%IA%J = p%IA%J + Ia%J
      p%IA%H = p%IA%H + Ia%H
      p%IA%M = p%IA%M + Ia%M
      p%pA%ang = p%pA%ang + pa%ang + cross(w%lever, pa%lin)
      p%pA%lin = p%pA%lin + pa%lin
   end subroutine

   pure subroutine accelerate(b, p, w, qdd)
      type(body), intent(in) :: b
      type(worker), intent(in) :: p
      type(worker), intent(inout) :: w
      real(dp), intent(out) :: qdd
      type(motion) :: a, S
      a%ang = p%a%ang + w%c%ang
      a%lin = p%a%lin + cross(p%a%ang, w%lever) + w%c%lin
      qdd = w%Dinv*(w%u - power(w%U_joint, a))
      S = axis_motion(b, w%R(:, 3))
      w%a%ang = a%ang + qdd*S%ang
      w%a%lin = a%lin + qdd*S%lin
   end subroutine

   function balance(c) result(largest)  ! largest moment or force left on any body, after `accelerations`
      type(chain), intent(in) :: c
      real(dp) :: largest
      type(motion) :: left(0:c%n), f, net, rate
      integer :: i
      largest = 0
      left = motion(0, 0)
      do i = c%n, 1, -1
         associate (w => c%work(i), p => left(c%bodies(i)%parent))
            f = inertia_times(w%IA, w%a)
            f%ang = f%ang + w%pA%ang; f%lin = f%lin + w%pA%lin
            net = inertia_times(w%rigid, w%a)
            rate = momentum_rate(w%rigid, w%v)
            left(i)%ang = f%ang - net%ang - rate%ang - left(i)%ang
            left(i)%lin = f%lin - net%lin - rate%lin - left(i)%lin
            largest = max(largest, maxval(abs(left(i)%ang)), maxval(abs(left(i)%lin)))
            p%ang = p%ang + f%ang + cross(w%lever, f%lin)
            p%lin = p%lin + f%lin
         end associate
      end do
   end function

end module

module steppers
   use chains
   implicit none

   ! Dormand and Prince (1980): stages by columns, and the weights of the error.
   real(dp), parameter :: A(6, 2:7) = reshape([ &
      1/5.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, &
      3/40.0_dp, 9/40.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, &
      44/45.0_dp, -56/15.0_dp, 32/9.0_dp, 0.0_dp, 0.0_dp, 0.0_dp, &
      19372/6561.0_dp, -25360/2187.0_dp, 64448/6561.0_dp, -212/729.0_dp, 0.0_dp, 0.0_dp, &
      9017/3168.0_dp, -355/33.0_dp, 46732/5247.0_dp, 49/176.0_dp, -5103/18656.0_dp, 0.0_dp, &
      35/384.0_dp, 0.0_dp, 500/1113.0_dp, 125/192.0_dp, -2187/6784.0_dp, 11/84.0_dp], [6, 6])
   real(dp), parameter :: E(7) = [71/57600.0_dp, 0.0_dp, -71/16695.0_dp, 71/1920.0_dp, -17253/339200.0_dp, &
                                  22/525.0_dp, -1/40.0_dp]

contains

   subroutine rate(c, y, tau, dy)
      type(chain), intent(inout) :: c
      real(dp), intent(in) :: y(:), tau(:)
      real(dp), intent(out) :: dy(:)
      dy(:c%n) = y(c%n + 1:)
      call accelerations(c, y(:c%n), y(c%n + 1:), tau, dy(c%n + 1:))
   end subroutine

   subroutine rk4(c, y, tau, duration, step)  ! equal steps of the classical method of order 4 (Kutta 1901)
      type(chain), intent(inout) :: c
      real(dp), intent(inout) :: y(:)
      real(dp), intent(in) :: tau(:), duration, step
      real(dp) :: h, k(2*c%n, 4)
      integer :: steps, s
      steps = ceiling(duration/step*(1 - 1e-12_dp))
      h = duration/steps
      do s = 1, steps
         call rate(c, y, tau, k(:, 1))
         call rate(c, y + h/2*k(:, 1), tau, k(:, 2))
         call rate(c, y + h/2*k(:, 2), tau, k(:, 3))
         call rate(c, y + h*k(:, 3), tau, k(:, 4))
         y = y + h/6*(k(:, 1) + 2*k(:, 2) + 2*k(:, 3) + k(:, 4))
      end do
   end subroutine

   subroutine rk45(c, y, tau, duration, rtol, atol, steps)  ! control after Hairer, Norsett and Wanner (1993), II.4
      type(chain), intent(inout) :: c
      real(dp), intent(inout) :: y(:)
      real(dp), intent(in) :: tau(:), duration, rtol, atol
      integer, intent(out) :: steps
      real(dp) :: k(2*c%n, 7), y_new(2*c%n), t, h, error, before, factor
      logical :: rejected
      integer :: stage
      h = first_step(c, y, tau, rtol, atol, k(:, 1))
      t = 0; before = 1e-4_dp; rejected = .false.; steps = 0
      if (1.01_dp*h >= duration) h = duration
      do
         do stage = 2, 7
            y_new = y + h*matmul(k(:, :stage - 1), A(:stage - 1, stage))
            call rate(c, y_new, tau, k(:, stage))
         end do
         error = norm(h*matmul(k, E), y, y_new, rtol, atol)
         factor = 0.2_dp
         if (error <= 1) then
            steps = steps + 1
            t = merge(duration, t + h, duration - t <= h)
            y = y_new
            k(:, 1) = k(:, 7)
            factor = 10
            if (error > 0) factor = min(10.0_dp, max(0.2_dp, 0.9_dp*error**(-0.17_dp)*before**0.04_dp))
            if (rejected) factor = min(1.0_dp, factor)
            before = max(error, 1e-4_dp)
            rejected = .false.
         else
            if (error < huge(error)) factor = max(0.2_dp, 0.9_dp*error**(-0.17_dp))
            rejected = .true.
         end if
         if (t >= duration .or. .not. h*factor >= 1e-15_dp*duration) exit
         h = h*factor
         if (1.01_dp*h >= duration - t) h = duration - t
      end do
   end subroutine

   pure function norm(x, y, y_new, rtol, atol)
      real(dp), intent(in) :: x(:), y(:), y_new(:), rtol, atol
      real(dp) :: norm
      norm = sqrt(sum((x/(atol + rtol*max(abs(y), abs(y_new))))**2)/size(x))
   end function

   function first_step(c, y, tau, rtol, atol, k1) result(h)
      type(chain), intent(inout) :: c
      real(dp), intent(in) :: y(:), tau(:), rtol, atol
      real(dp), intent(out) :: k1(:)
      real(dp) :: h, extent, first, trial, largest, k2(2*c%n)
      call rate(c, y, tau, k1)
      extent = norm(y, y, y, rtol, atol)
      first = norm(k1, y, y, rtol, atol)
      trial = 1e-6_dp
      if (extent >= 1e-5_dp .and. first >= 1e-5_dp) trial = 0.01_dp*extent/first
      call rate(c, y + trial*k1, tau, k2)
      largest = max(first, norm(k2 - k1, y, y, rtol, atol)/trial)
      if (largest <= 1e-15_dp) then
         h = max(1e-6_dp, 1e-3_dp*trial)
      else
         h = (0.01_dp/largest)**0.2_dp
      end if
      h = min(100*trial, h)
   end function

end module

program main
   use steppers
   use, intrinsic :: iso_fortran_env, only: int64
   implicit none
   type(chain) :: c
   integer :: batch, task, repeats, calls, repeat, call_, unit
   real(dp) :: duration, step, rtol, atol
   real(dp), allocatable :: q(:, :), qd(:, :), tau(:, :), rows(:, :)
   character(len=512) :: problem, answer
   integer(int64) :: started, ended, ticks

   if (command_argument_count() /= 2) error stop "usage: chain PROBLEM RESULT"
   call get_command_argument(1, problem)
   call get_command_argument(2, answer)
   call read_problem()
   call start(c)
   allocate (rows(merge(c%n, 2*c%n, task == 0) + 1, batch))
   do repeat = 1, repeats
      call system_clock(started, ticks)
      do call_ = 1, calls
         call solve(check=.false.)
      end do
      call system_clock(ended)
      print '(es16.9)', real(ended - started, dp)/ticks/calls
   end do
   call solve(check=.true.)
   open (newunit=unit, file=answer, action='write')
   call write_rows()
   close (unit)

contains

   subroutine read_problem()
      integer :: i
      open (newunit=unit, file=problem, status='old', action='read')
      read (unit, *) c%n, batch
      read (unit, *) c%gravity
      read (unit, *) task, repeats, calls
      read (unit, *) duration, step, rtol, atol
      allocate (c%bodies(c%n), q(c%n, batch), qd(c%n, batch), tau(c%n, batch))
      do i = 1, c%n
         associate (b => c%bodies(i))
            read (unit, *) b%parent, b%joint, b%pitch, b%translation, b%rotation, b%mass, b%cg, b%inertia
            b%parent = b%parent + 1
            b%rotation = transpose(b%rotation)
         end associate
      end do
      read (unit, *) q
      read (unit, *) qd
      read (unit, *) tau
      close (unit)
   end subroutine

   subroutine solve(check)  ! the whole batch once
      logical, intent(in) :: check
      real(dp) :: y(2*c%n)
      integer :: i, steps
      do i = 1, batch
         if (task == 0) then
            call accelerations(c, q(:, i), qd(:, i), tau(:, i), rows(:c%n, i))
            if (check) rows(c%n + 1, i) = balance(c)
            cycle
         end if
         y = [q(:, i), qd(:, i)]
         steps = 0
         if (task == 1) call rk4(c, y, tau(:, i), duration, step)
         if (task == 2) call rk45(c, y, tau(:, i), duration, rtol, atol, steps)
         rows(:, i) = [y, real(steps, dp)]
      end do
   end subroutine

   subroutine write_rows()
      integer :: i
      do i = 1, batch
         write (unit, '(*(es25.16e3))') rows(:, i)
      end do
   end subroutine

end program
