"""Starts a fork server and speaks to it by hand: LAUNCH, what it is sent and by whom as JSON on stdin; what came back as JSON on stdout.

{"launch": PATH, "directory": PATH, "frames": [[kind, hex], ...], "who": "owner" | "other"}: the other is a child of the owner.
"""
import json, os, socket, struct, subprocess, sys

asked = json.load(sys.stdin)
ours, theirs = socket.socketpair()

def place():
    os.dup2(theirs.fileno(), 30)
    os.dup2(30, 4)

words = [*asked['launch'], '--fork-server', asked['directory']]
server = subprocess.Popen(words, preexec_fn=place, close_fds=False, env={}, stdin=subprocess.DEVNULL)
theirs.close()
assert ours.recv(1) == b'\0', 'the server is not ready'
names = os.listdir(asked['directory'])

def ask():
    line, back = socket.socket(socket.AF_UNIX), b''
    line.settimeout(20)
    try:
        line.connect(f'/proc/{server.pid}/fd/5')
        line.sendall(b''.join(struct.pack('II', kind, len(text) // 2) + bytes.fromhex(text) for kind, text in asked['frames']))
        while piece := line.recv(65536):
            back += piece
    except (ConnectionResetError, BrokenPipeError):  # it has hung up with frames unread
        pass
    return back

def ask_as_other():
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, ask())
        os._exit(0)
    os.close(write)
    os.wait()
    return os.read(read, 1 << 20)

back, kinds = ask() if asked['who'] == 'owner' else ask_as_other(), []
while len(back) >= 8:
    kind, size = struct.unpack('II', back[:8])
    kinds.append([kind, back[8:8 + size].decode('latin1')])
    back = back[8 + size:]
alive = server.poll() is None
ours.close()
json.dump({'frames': kinds, 'names': names, 'alive': alive, 'status': server.wait(20)}, sys.stdout)
