"""Attacks on the walls of a network, one a word; prints `word result`, where `done` is what an attacker wants.

raw, packet, vsock, netfilter, xfrm    a socket of that family
abstract=NAME                          connects to an abstract UNIX socket
transparent                            an address that is not one's own
route, address                         changes them by netlink
take=ADDRESS,PORT,tcp|udp              the place of a server of ours
raise                                  namespaces in which one would be root
sockets                                UNIX sockets with a name that are to be seen
processes=NAME                         processes of that name that are to be seen
"""
import ctypes, errno, os, socket, struct, sys

FAMILIES = {
    'raw': (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    'packet': (socket.AF_PACKET, socket.SOCK_RAW, 0),
    'vsock': (40, socket.SOCK_STREAM, 0),
    'netfilter': (socket.AF_NETLINK, socket.SOCK_RAW, 12),
    'xfrm': (socket.AF_NETLINK, socket.SOCK_RAW, 6),
}
RTM_NEWADDR, RTM_NEWROUTE = 20, 24
REQUEST_ACK_CREATE = 1 | 4 | 0x400
LO = 1


def ask_kernel(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack('=IHHII', 16 + len(body), kind, REQUEST_ACK_CREATE, 1, 0) + body)
        error = -struct.unpack_from('=i', kernel.recv(4096), 16)[0]
        if error:
            raise OSError(error, '')


def attribute(kind, data):
    return struct.pack('=HH', 4 + len(data), kind) + data


def route(_):
    """198.51.100.0/24 by lo."""
    head = struct.pack('=BBBBBBBBI', socket.AF_INET, 24, 0, 0, 254, 4, 253, 1, 0)
    ask_kernel(RTM_NEWROUTE, head + attribute(1, bytes([198, 51, 100, 0])) + attribute(4, struct.pack('=I', LO)))


def address(_):
    """198.51.100.1/32 on lo."""
    head = struct.pack('=BBBBI', socket.AF_INET, 32, 0, 0, LO)
    ask_kernel(RTM_NEWADDR, head + attribute(1, bytes([198, 51, 100, 1])) + attribute(2, bytes([198, 51, 100, 1])))


def abstract(name):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect('\0' + name)


def transparent(_):
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_IP, 19, 1)


def take(place):
    host, port, kind = place.split(',')
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((host, int(port)))


def raise_(_):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000 | 0x40000000) < 0:
        raise OSError(ctypes.get_errno(), '')


def sockets(_):
    with open('/proc/net/unix') as table:
        named = [line.split()[7] for line in table.readlines()[1:] if len(line.split()) > 7]
    if not named:
        raise OSError(errno.ENOENT, '')


def processes(name):
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm') as comm:
                if comm.read().strip() == name:
                    return
        except OSError:
            continue
    raise OSError(errno.ESRCH, '')


for word in sys.argv[1:]:
    name, _, value = word.partition('=')
    try:
        if name in FAMILIES:
            socket.socket(*FAMILIES[name]).close()
        else:
            globals()['raise_' if name == 'raise' else name](value)
        result = 'done'
    except OSError as error:
        result = errno.errorcode.get(error.errno, str(error))
    print(word, result, flush=True)
