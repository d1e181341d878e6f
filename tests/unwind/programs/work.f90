! SPDX-License-Identifier: Apache-2.0
! Fortran: recursion, array expressions, internal procedures, for so many CPU seconds.
program work
   implicit none
   character(len=32) :: word
   real(8) :: seconds, used, total = 0
   integer :: status
   call get_command_argument(1, word)
   read (word, *, iostat=status) seconds
   if (status /= 0) seconds = 1
   do
      total = total + deeper(12)
      call cpu_time(used)
      if (used > seconds) exit
   end do
   if (total < 0) print *, total
contains
   recursive function deeper(depth) result(sum_of)
      integer, intent(in) :: depth
      real(8) :: sum_of, a(40, 40), b(40, 40)
      if (depth > 0) then
         sum_of = deeper(depth - 1) + depth
      else
         call random_number(a)
         b = transpose(a)
         sum_of = sum(matmul(a, b)) + sum(exp(sin(a)))
      end if
   end function
end program
