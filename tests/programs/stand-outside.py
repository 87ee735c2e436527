"""A process that a sandboxed one should not reach: listens, in argv[1] too, says where its memory is, and ends with its stdin. Anybody may trace it."""
import ctypes, os, socket, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0)); tcp.listen()
udp = socket.socket(type=socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 0))
name = f"llm-do-test-{os.getpid()}"
stream = socket.socket(socket.AF_UNIX); stream.bind("\0" + name); stream.listen()
datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); datagrams.bind("\0" + name + "-datagrams")
file = socket.socket(socket.AF_UNIX); file.bind(sys.argv[1]); file.listen()
start = open("/proc/self/maps").readline().split("-")[0]
print(os.getpid(), tcp.getsockname()[1], udp.getsockname()[1], name, start, flush=True)
sys.stdin.read()
