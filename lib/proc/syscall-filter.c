/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in syscall-filter.h. Each number is followed by its own answer, so that no jump is long.
 * The program's length costs nothing from Linux 5.11 on: the kernel remembers what it answers for a
 * number. clone3 passes its flags by memory, which a filter cannot see; it answers ENOSYS, and
 * libc takes clone. So does, for what speaks to servers, every number that is newer than the list:
 * nobody has looked at what it can do. */
#include "proc/syscall-filter.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define X32_BIT 0x40000000u

/* By number where the headers of an older libc have no name; from 424 on they are the same on all
 * machines. */
#define NR_MOUNT_SETATTR  442
#define NR_QUOTACTL_FD    443
#define NR_MEMFD_SECRET   447
#define NR_FCHMODAT2      452
#define NR_SETXATTRAT     463
#define NR_REMOVEXATTRAT  466
#define NR_OPEN_TREE_ATTR 467
#define NR_FILE_SETATTR   469

/* All up to here were looked at: Linux 6.18. */
#define NR_NEWEST 469

/* The leak checker at the end of a program attaches to its threads. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif
#endif

static const uint32_t refused[] = {
#ifndef WITH_SANITIZER
	SYS_ptrace,
#endif
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_migrate_pages,
	SYS_move_pages,
	/* Files past the folders that lead to them: CAP_DAC_READ_SEARCH allows it for any. */
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_fanotify_init,
	/* What a machine is made of. */
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_open_tree,
	NR_OPEN_TREE_ATTR,
	SYS_move_mount,
	NR_MOUNT_SETATTR,
	SYS_swapon,
	SYS_swapoff,
	SYS_quotactl,
	NR_QUOTACTL_FD,
	SYS_acct,
	SYS_unshare,
	SYS_setns,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
	SYS_reboot,
	SYS_syslog,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_vhangup,
	SYS_personality,
#ifdef __x86_64__
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
	SYS_uselib,
#endif
	/* Where faults of kernels are found, and what none of ours needs. */
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_userfaultfd,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_vmsplice,
	SYS_remap_file_pages,
	SYS_execveat,
};

static const uint32_t for_sampling[] = {
	SYS_bpf, SYS_perf_event_open, SYS_process_vm_readv, SYS_pidfd_getfd, SYS_kcmp,
};

/* Not for what speaks to servers. With Landlock most of these lead nowhere; it may be absent. */
static const uint32_t for_others[] = {
	SYS_execve,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	SYS_kill,
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_pidfd_send_signal,
	SYS_pidfd_open,
	/* Of its user's, and so of root's processes: their turn, their place, their memory. */
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_sched_setparam,
	SYS_sched_setscheduler,
	SYS_sched_setaffinity,
	SYS_sched_setattr,
	/* Memory that no limit of its own counts. */
	SYS_memfd_create,
	NR_MEMFD_SECRET,
	SYS_shmget,
	SYS_shmat,
	SYS_shmctl,
	SYS_semget,
	SYS_semop,
	SYS_semtimedop,
	SYS_semctl,
	SYS_msgget,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_msgctl,
	SYS_mq_open,
	SYS_mq_unlink,
	SYS_truncate,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_mkdirat,
	SYS_mknodat,
	SYS_unlinkat,
	SYS_linkat,
	SYS_symlinkat,
#ifdef SYS_renameat
	SYS_renameat,
#endif
	SYS_renameat2,
	SYS_fchmod,
	SYS_fchmodat,
	NR_FCHMODAT2,
	SYS_fchown,
	SYS_fchownat,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	NR_SETXATTRAT,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
	NR_REMOVEXATTRAT,
	NR_FILE_SETATTR,
	SYS_utimensat,
#ifdef __x86_64__
	SYS_fork,
	SYS_vfork,
	SYS_creat,
	SYS_mkdir,
	SYS_rmdir,
	SYS_mknod,
	SYS_unlink,
	SYS_link,
	SYS_symlink,
	SYS_rename,
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
#endif
};

/* The kernel sends a signal to whom a descriptor's owner is. */
static const uint32_t owner_by_fcntl[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};

/* Of a socket, what may be asked and that it does not block. Others put characters into terminals
 * (TIOCSTI), change devices and files, and give signals an owner. */
static const uint32_t of_sockets[] = {
	FIONREAD,     FIONBIO,    SIOCGIFNAME, SIOCGIFCONF,
	SIOCGIFFLAGS, SIOCGIFMTU, SIOCGIFADDR, SIOCGIFINDEX,
};

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

static const uint32_t of_internet[] = {0, IPPROTO_TCP, IPPROTO_UDP};

#define SOCK_TYPES 0xfu /* what is left of a type without its flags */

#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

struct program {
	struct sock_filter f[2 * (N_OF(refused) + N_OF(for_sampling) + N_OF(for_others)) + 112];
	unsigned short n;
};

static void put(struct program *p, struct sock_filter step)
{
	check(p->n < N_OF(p->f));
	p->f[p->n++] = step;
}

static void load(struct program *p, uint32_t offset)
{
	put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void jump(struct program *p, uint16_t how, uint32_t value, uint8_t yes, uint8_t no)
{
	put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, value, yes, no));
}

static void answer(struct program *p, uint32_t what)
{
	put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

static void refuse(struct program *p, uint32_t number, uint32_t error)
{
	jump(p, BPF_JEQ, number, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | error);
}

static uint32_t argument(unsigned int i)
{
	return (uint32_t)(offsetof(struct seccomp_data, args) + i * sizeof(__u64));
}

/* Refused with one of these bits in an argument, and allowed else. */
static void refuse_bits(struct program *p, uint32_t number, unsigned int i, uint32_t bits)
{
	jump(p, BPF_JEQ, number, 0, 4);
	load(p, argument(i));
	jump(p, BPF_JSET, bits, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	answer(p, SECCOMP_RET_ALLOW);
}

/* Refused with one of these as the second argument, and allowed else. */
static void refuse_commands(struct program *p, uint32_t number, const uint32_t *commands, size_t n)
{
	jump(p, BPF_JEQ, number, 0, (uint8_t)(2 * n + 2));
	load(p, argument(1));
	for (size_t i = 0; i < n; i++) {
		jump(p, BPF_JEQ, commands[i], 0, 1);
		answer(p, SECCOMP_RET_ERRNO | EPERM);
	}
	answer(p, SECCOMP_RET_ALLOW);
}

/* Allowed with one of these as the argument, and refused else. */
static void allow_only(struct program *p, unsigned int i, const uint32_t *values, size_t n)
{
	load(p, argument(i));
	for (size_t k = 0; k < n; k++)
		jump(p, BPF_JEQ, values[k], (uint8_t)(n - k), 0);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	answer(p, SECCOMP_RET_ALLOW);
}

/* Of a system call, by its second argument. */
static void allow_commands(struct program *p, uint32_t number, const uint32_t *commands, size_t n)
{
	jump(p, BPF_JEQ, number, 0, (uint8_t)(n + 3));
	allow_only(p, 1, commands, n);
}

/* Allowed where the first argument is `value`, or has its bits, and refused else. */
static void refuse_unless(struct program *p, uint32_t number, uint16_t how, uint32_t value)
{
	jump(p, BPF_JEQ, number, 0, 4);
	load(p, argument(0));
	jump(p, how, value, 1, 0);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	answer(p, SECCOMP_RET_ALLOW);
}

/* openat2 has its flags in memory, as clone3 has. Signals to itself are what abort sends. Of a pair
 * of datagram sockets each can be connected to a service. */
static void put_sending(struct program *p)
{
	jump(p, BPF_JGT, NR_NEWEST, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0; i < N_OF(for_others); i++)
		refuse(p, for_others[i], EPERM);
	refuse(p, SYS_openat2, ENOSYS);
	refuse_bits(p, SYS_openat, 2, WRITING);
#ifdef __x86_64__
	refuse_bits(p, SYS_open, 1, WRITING);
#endif
	refuse_unless(p, SYS_clone, BPF_JSET, CLONE_THREAD);
	refuse_unless(p, SYS_tgkill, BPF_JEQ, (uint32_t)getpid());
	refuse_unless(p, SYS_prlimit64, BPF_JEQ, 0);
	refuse_bits(p, SYS_socketpair, 1, SOCK_DGRAM);
	refuse_commands(p, SYS_fcntl, owner_by_fcntl, N_OF(owner_by_fcntl));
	allow_commands(p, SYS_ioctl, of_sockets, N_OF(of_sockets));
}

/* What a resolver and a connection of TCP take: the interfaces' addresses, TCP and UDP. */
static void put_sockets_of_clients(struct program *p)
{
	jump(p, BPF_JEQ, SYS_socket, 1, 0);
	answer(p, SECCOMP_RET_ALLOW);
	load(p, argument(0));
	jump(p, BPF_JEQ, AF_NETLINK, 0, 4);
	load(p, argument(2));
	jump(p, BPF_JEQ, NETLINK_ROUTE, 0, 1);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	jump(p, BPF_JEQ, AF_INET, 2, 0);
	jump(p, BPF_JEQ, AF_INET6, 1, 0);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	load(p, argument(1));
	put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCK_TYPES));
	jump(p, BPF_JEQ, SOCK_STREAM, 2, 0);
	jump(p, BPF_JEQ, SOCK_DGRAM, 1, 0);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	allow_only(p, 2, of_internet, N_OF(of_internet));
}

static void put_sockets(struct program *p)
{
	jump(p, BPF_JEQ, SYS_socket, 1, 0);
	answer(p, SECCOMP_RET_ALLOW);
	allow_only(p, 0, families, N_OF(families));
}

static void make(struct program *p, enum syscalls what)
{
	load(p, offsetof(struct seccomp_data, arch));
	jump(p, BPF_JEQ, SYSCALL_FILTER_ARCH, 1, 0);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	load(p, offsetof(struct seccomp_data, nr));
	jump(p, BPF_JGE, X32_BIT, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	refuse(p, SYS_clone3, ENOSYS);
	for (size_t i = 0; i < N_OF(refused); i++)
		refuse(p, refused[i], EPERM);
	for (size_t i = 0; i < N_OF(for_sampling) && what != SYSCALLS_SAMPLING; i++)
		refuse(p, for_sampling[i], EPERM);
	/* The sockets are the last of all. */
	if (what == SYSCALLS_SENDING) {
		put_sending(p);
		put_sockets_of_clients(p);
	} else {
		refuse_bits(p, SYS_clone, 0, NEW_NAMESPACES);
		put_sockets(p);
	}
}

int syscall_filter_install(enum syscalls what)
{
	struct program p = {.n = 0};
	struct sock_fprog program = {.filter = p.f};

	make(&p, what);
	program.len = p.n;
	/* It is no wall around code that guesses at memory, so nothing is made slower for that. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    &program) == 0)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}
