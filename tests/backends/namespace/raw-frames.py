"""Speaks to launch by hand: its words, launch file and frames as JSON on stdin; what came back as JSON on stdout.

{"launch": PATH, "file": PATH, "frames": [[kind, hex], ...], "descriptors": N}: so many descriptors of /dev/null go with the first byte,
a fourth is an eventfd that holds 0.
"""
import array, json, os, socket, struct, subprocess, sys

asked = json.load(sys.stdin)
ours, theirs = socket.socketpair()
file = os.open(asked['file'], os.O_RDONLY)

def place():
    os.dup2(file, 30), os.dup2(theirs.fileno(), 31)
    os.dup2(30, 3), os.dup2(31, 4)

streams = 'own' if asked['descriptors'] else 'output'
launch = subprocess.Popen([*asked['launch'], '--streams', streams], preexec_fn=place, close_fds=False, env={})
theirs.close()
null = os.open('/dev/null', os.O_RDWR)
given = ([null] * 3 + [os.eventfd(0)])[:asked['descriptors']] if asked['descriptors'] else []
bytes_out = b''.join(struct.pack('II', kind, len(text) // 2) + bytes.fromhex(text) for kind, text in asked['frames'])
ours.sendmsg([bytes_out], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', given))] if given else [])
back = b''
ours.settimeout(20)
try:
    while piece := ours.recv(65536):
        back += piece
except ConnectionResetError:  # launch has hung up with frames unread
    pass
# Our side stays open: the runner must end by itself.
status, kinds = launch.wait(20), []
while len(back) >= 8:
    kind, size = struct.unpack('II', back[:8])
    kinds.append([kind, back[8:8 + size].decode('latin1')])
    back = back[8 + size:]
json.dump({'status': status, 'frames': kinds}, sys.stdout)
