"""Sends each of its words, JSON lists of a port of the sandbox's proxy and a text in Latin-1, and prints what comes back as JSON."""
import json, socket, sys


def ask(port, text):
    data = b''
    with socket.create_connection(('198.18.0.1', port), 20) as connection:
        connection.sendall(text.encode('latin1'))
        try:
            while (got := connection.recv(65536)):
                data += got
        except ConnectionResetError:
            data += b'RESET'
        except TimeoutError:
            data += b'TIMEOUT'
    return data


for word in sys.argv[1:]:
    try:
        answer = ask(*json.loads(word)).decode('latin1')
    except OSError as error:
        answer = str(error)
    print(json.dumps({'answer': answer}))
