"""A client of a warm sandbox that takes its time: claims one, says that it comes, and sends its command a moment later.

{"directory": PATH of the pool, "name": of a ready sandbox, "change": PATH, or null, "kind": of the frame that tells the plan, "plan": hex,
"early": true, if it is sent at once, "looked": nanoseconds from now, of FRAME_LOOKED, or null, "places": hex of FRAME_PLACES, which always is, "" = none, "run": hex}
as JSON on stdin; the path is made while the sandbox waits for the command. The frames that came back as JSON on stdout.
"""
import json, os, resource, socket, struct, sys, time

RUN, CALLER, PLACES, LOOKED = 2, 1, 9, 10
asked = json.load(sys.stdin)
os.chdir(asked['directory'])
claimed = 'c' + asked['name'][1:]
os.rename(asked['name'], claimed)
sandbox = socket.socket(socket.AF_UNIX)
sandbox.connect(claimed)
sandbox.settimeout(20)

def frame(kind, body):
    return struct.pack('II', kind, len(body)) + body

mask = sum(1 << processor for processor in os.sched_getaffinity(0))
limits = [number % 2**64 for limit in range(16) for number in resource.getrlimit(limit)]
inherited = struct.pack('qq', os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)) + mask.to_bytes(128, 'little') + struct.pack('32Q', *limits)
plan = frame(asked['kind'], bytes.fromhex(asked['plan']))
if asked['looked'] is not None:
    plan = frame(LOOKED, struct.pack('Q', time.monotonic_ns() + asked['looked'])) + plan
places = bytes.fromhex(asked['places'])
sandbox.sendall(frame(CALLER, inherited) + (frame(PLACES, places) if places else b'') + (plan if asked['early'] else b''))
time.sleep(0.3)  # it has long looked at everything by then
if asked['change']:
    os.makedirs(os.path.dirname(asked['change']), exist_ok=True)
    open(asked['change'], 'w').close()
null = os.open('/dev/null', os.O_RDWR)
read, write = os.pipe()
os.fchmod(write, 0o622)
back = b''
try:
    if not asked['early']:
        sandbox.sendall(plan)
    socket.send_fds(sandbox, [frame(RUN, bytes.fromhex(asked['run']))], [null, write, null])
    os.close(write)
    write = -1
    while piece := sandbox.recv(65536):
        back += piece
except (ConnectionResetError, BrokenPipeError):
    pass  # it has hung up
if write >= 0:
    os.close(write)
kinds = []
while len(back) >= 8:
    kind, size = struct.unpack('II', back[:8])
    kinds.append(kind)
    back = back[8 + size:]
sandbox.close()
json.dump({'frames': kinds, 'printed': os.read(read, 4096).decode()}, sys.stdout)
