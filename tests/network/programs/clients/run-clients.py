"""Runs the clients of the file CLIENTS, as many at once as there are processors: run-clients.py CLIENTS

CLIENTS is JSON, a list of [name, script, what it prints when it was served]; a line of JSON comes out for each: name, whether it was
served, milliseconds, and the end of what it printed.
"""
import concurrent.futures, json, os, subprocess, sys, tempfile, time

LIMIT_S = 60


def run(client):
    name, script, served = client
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, 'HOME': directory}
        try:
            done = subprocess.run(
                ['sh', '-c', script], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
            printed = done.stdout.decode(errors='replace')
        except subprocess.TimeoutExpired as error:
            printed = f'{(error.output or b"").decode(errors="replace")}\n(not over after {LIMIT_S} s)'
    ms = round(1000 * (time.monotonic() - begun))
    return json.dumps({'name': name, 'served': served in printed, 'ms': ms, 'printed': printed.strip()[-300:]})


with open(sys.argv[1]) as file, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
    for line in workers.map(run, json.load(file)):
        print(line, flush=True)
