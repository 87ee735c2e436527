"""Speaks frames by hand to launch: a request as JSON on stdin; what came back as JSON on stdout.

{"launch": WORDS, "frames": [[kind, hex], ...]}, and one of
"file": PATH, "descriptors": N               a cold runner of that launch file; so many descriptors of /dev/null go with the first byte,
                                             a fourth is an eventfd that holds 0
"file": PATH, "descriptors": 0, "deaf": true the same, which nothing can be sent to from the first output on
"directory": PATH, "who": "owner" | "other"  a fork server; the other is a child of its owner
"directory": PATH, "who": "outside"          a fork server in a PID namespace that its owner is not in; a process asks that is not its owner
"directory": PATH, "who": "gone"             a fork server whose owner leaves the launcher as that says its first word; launch runs under strace
"""
import array, ctypes, json, os, signal, socket, struct, subprocess, sys, time

asked = json.load(sys.stdin)
ours, theirs = socket.socketpair()
sent = b''.join(struct.pack('II', kind, len(text) // 2) + bytes.fromhex(text) for kind, text in asked['frames'])

def start(words, places, **more):
    def place():
        for at, (descriptor, _) in enumerate(places): os.dup2(descriptor, 30 + at)
        for at, (_, number) in enumerate(places): os.dup2(30 + at, number)
    child = subprocess.Popen([*asked['launch'], *words], preexec_fn=place, close_fds=False, env={}, **more)
    theirs.close()
    return child

def all_of(line):
    line.settimeout(20)
    back = b''
    try:
        while piece := line.recv(65536): back += piece
    except ConnectionResetError: pass  # launch has hung up with frames unread
    return back

def frames_in(back):
    frames = []
    while len(back) >= 8:
        kind, size = struct.unpack('II', back[:8])
        frames.append([kind, back[8:8 + size].decode('latin1')])
        back = back[8 + size:]
    return frames

def cold_runner(descriptors):
    file, null = os.open(asked['file'], os.O_RDONLY), os.open('/dev/null', os.O_RDWR)
    launch = start(['--streams', 'own' if descriptors else 'output'], [(file, 3), (theirs.fileno(), 4)])
    given = ([null] * 3 + [os.eventfd(0)])[:descriptors] if descriptors else []
    ours.sendmsg([sent], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', given))] if given else [])
    if asked.get('deaf'):
        ours.recv(1)
        ours.shutdown(socket.SHUT_RD)
    back = all_of(ours)
    # Our side stays open: the runner must end without it.
    return {'status': launch.wait(20), 'frames': frames_in(back)}

def ask(server):
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(20)
    try:
        line.connect(f'/proc/{server}/fd/5')
        line.sendall(sent)
    except (ConnectionResetError, BrokenPipeError): return b''
    return all_of(line)

def ask_as_other(server):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, ask(server))
        os._exit(0)
    os.close(write)
    os.wait()
    return os.read(read, 1 << 20)

def outside():
    """A process that asks the server whose number it gets, and sends what came back; then this one's children get another PID namespace."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        for other in (ours, theirs, here): other.close()
        there.sendall(ask(there.recv(20).decode()) or b'-')
        os._exit(0)
    assert ctypes.CDLL(None, use_errno=True).unshare(0x20000000) == 0, 'CLONE_NEWPID'
    return here

def until(what, look):
    for _ in range(2000):
        found = look()
        if found: return found
        time.sleep(0.01)
    raise TimeoutError(what)

def children_of(pid):
    return open(f'/proc/{pid}/task/{pid}/children').read().split()

def is_held(pid):
    """By strace, for longer than the moment in which it takes a new process over."""
    for _ in range(20):
        if open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] != 't': return False
        time.sleep(0.01)
    return True

def leave(server):
    """@returns whether the launcher ends"""
    line = socket.socket(socket.AF_UNIX)
    line.connect(f'/proc/{server.pid}/fd/5')
    line.sendall(sent)
    launcher, = until('launcher', lambda: children_of(server.pid))
    until('first word', lambda: is_held(launcher))
    line.close()
    try: return until('end', lambda: not os.path.exists(f'/proc/{launcher}'))
    except TimeoutError:
        os.kill(int(launcher), signal.SIGTERM)
        return False

def fork_server(directory):
    other = outside() if asked['who'] == 'outside' else None
    server = start(['--fork-server', directory, directory], [(theirs.fileno(), 4)], stdin=subprocess.DEVNULL)
    ready = ours.recv(1) == b'\0'
    if other:
        if ready: other.sendall(str(server.pid).encode())
        return {'ready': ready, 'frames': frames_in(other.recv(1 << 20)) if ready else []}
    assert ready, 'the server is not ready'
    names = os.listdir(directory)
    if asked['who'] == 'gone': return {'ends': leave(server)}
    back = ask(server.pid) if asked['who'] == 'owner' else ask_as_other(server.pid)
    alive = server.poll() is None
    ours.close()
    return {'frames': frames_in(back), 'names': names, 'alive': alive, 'status': server.wait(20)}

json.dump(fork_server(asked['directory']) if 'directory' in asked else cold_runner(asked['descriptors']), sys.stdout)
