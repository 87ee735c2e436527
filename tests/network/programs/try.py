"""Tries each of its words, `tcp,HOST,PORT`, `udp,HOST,PORT` or `name,HOST`, and prints a line: the word, `ok` or an error."""
import errno, socket, sys

NAMES = {socket.EAI_NONAME: 'EAI_NONAME', socket.EAI_AGAIN: 'EAI_AGAIN'}


def error_name(error):
    if isinstance(error, socket.gaierror):
        return NAMES.get(error.errno, str(error.errno))
    if isinstance(error, TimeoutError):
        return 'timeout'
    return errno.errorcode.get(error.errno, str(error))


def tcp(host, port):
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(b'GET /say HTTP/1.0\r\n\r\n')
        return 'ok' if connection.recv(64) else 'closed'


def udp(host, port):
    """A name server answers this; whoever else hears it keeps silent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(5)
        datagrams.connect((host, int(port)))
        datagrams.send(bytes([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 120, 0, 0, 1, 0, 1]))
        datagrams.recv(512)
        return 'ok'


def name(host):
    socket.getaddrinfo(host, None)
    return 'ok'


for word in sys.argv[1:]:
    what, *rest = word.split(',')
    try:
        result = {'tcp': tcp, 'udp': udp, 'name': name}[what](*rest)
    except OSError as error:
        result = error_name(error)
    print(word, result)
