"""Tries to get out of a sandbox without namespaces. argv: FILE PID TCP UDP ABSTRACT DIRECTORY ADDRESS SOCKET. Prints what worked, one word a line."""
import ctypes, os, socket, sys

secret, pid, tcp, udp, abstract, outside = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6]
libc = ctypes.CDLL(None, use_errno=True)


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def connect(family, kind, address):
    peer = socket.socket(family, kind)
    peer.connect(address)
    peer.send(b"x")


def by_link():
    os.symlink(secret, "link")
    try:
        open("link").read()
    finally:
        os.unlink("link")


def set_limit():
    import resource
    resource.prlimit(pid, resource.RLIMIT_NOFILE, resource.prlimit(pid, resource.RLIMIT_NOFILE))


def read_memory():
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    room = ctypes.create_string_buffer(8)
    part, far = Part(ctypes.addressof(room), 8), Part(int(sys.argv[7], 16), 8)
    called(libc.process_vm_readv(pid, ctypes.byref(part), 1, ctypes.byref(far), 1, 0))


def make_segment():
    segment = libc.shmget(0, 4096, 0o1600)
    called(segment)
    called(libc.shmctl(segment, 0, None))


def make_semaphores():
    semaphores = libc.semget(0, 1, 0o1600)
    called(semaphores)
    called(libc.semctl(semaphores, 0, 0))


def make_queue():
    queue = libc.msgget(0, 0o1600)
    called(queue)
    called(libc.msgctl(queue, 0, None))


def make_posix_queue():
    name = f"/llm-do-test-{os.getpid()}".encode()
    called(libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None))
    called(libc.mq_unlink(name))


def make(path):
    open(path, "x").close()
    os.unlink(path)


TRIES = {
    "read": lambda: open(secret).read(),
    "read-by-root": lambda: open("/proc/self/root" + secret).read(),
    "read-by-link": by_link,
    "list": lambda: os.listdir(outside),
    "write": lambda: open(secret, "a").close(),
    "truncate": lambda: os.truncate(secret, 0),
    "make": lambda: make(outside + "/made"),
    "link-in": lambda: (os.link(secret, "twin"), os.unlink("twin")),
    "tcp": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)),
    "udp": lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)),
    "abstract": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract),
    "socket-file": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, sys.argv[8]),
    "pair-to-path": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", "\0" + abstract + "-datagrams"),
    "signal": lambda: os.kill(pid, 0),
    "ptrace": lambda: (called(libc.ptrace(16, pid, 0, 0)), os.waitpid(pid, 0), libc.ptrace(17, pid, 0, 0)),
    "memory": read_memory,
    "environ": lambda: open(f"/proc/{pid}/environ").read(),
    "limit": set_limit,
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "shm": make_segment,
    "semaphores": make_semaphores,
    "queue": make_queue,
    "posix-queue": make_posix_queue,
    "key": lambda: called(libc.syscall(248 if os.uname().machine == "x86_64" else 217, b"user", b"llm-do-test", b"x", 1, -2)),
    "descriptor": lambda: os.fstat(9),
}

for name, attempt in TRIES.items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
print("tried")
