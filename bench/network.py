"""Server and clients of bench/network.mjs: network.py serve ADDRESS | latency | down | up | many, the last four with ADDRESS.

Ports: 7001 sends back one byte, 7002 sends a GiB, 7003 takes all and then sends one byte, 7004 keeps what comes. Clients print a number:
seconds for one connection and a byte (median), seconds for a GiB, or nothing until their standard input ends (`many`).
"""
import socket, statistics, sys, threading, time

ROUNDS, GIB, BLOCK, MANY = 400, 1 << 30, bytes(1 << 20), 1000


def echo(connection):
    connection.sendall(connection.recv(1))


def send(connection):
    for _ in range(GIB // len(BLOCK)):
        connection.sendall(BLOCK)


def take(connection):
    while connection.recv(1 << 20):
        pass
    connection.sendall(b'.')


def keep(connection):
    connection.recv(1)


def accept(server, handler):
    def handle(connection):
        with connection:
            handler(connection)

    while True:
        threading.Thread(target=handle, args=(server.accept()[0],), daemon=True).start()


def serve(address):
    threading.stack_size(256 << 10)
    for port, handler in ((7001, echo), (7002, send), (7003, take), (7004, keep)):
        server = socket.create_server((address, port), backlog=1024)
        threading.Thread(target=accept, args=(server, handler), daemon=True).start()
    print('ready', flush=True)
    threading.Event().wait()


def timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def latency(address):
    def once():
        with socket.create_connection((address, 7001)) as connection:
            connection.sendall(b'.')
            connection.recv(1)

    once()
    print(statistics.median(timed(once) for _ in range(ROUNDS)))


def down(address):
    def fetch():
        with socket.create_connection((address, 7002)) as connection:
            while connection.recv(1 << 20):
                pass

    print(timed(fetch))


def up(address):
    def give():
        with socket.create_connection((address, 7003)) as connection:
            send(connection)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    print(timed(give))


def many(address):
    held = [socket.create_connection((address, 7004)) for _ in range(MANY)]
    print(len(held), flush=True)
    sys.stdin.read()


globals()[sys.argv[1]](sys.argv[2])
