/** Real clients, and what each prints when it was served: data for clients.deep.system.test.ts. */

export interface Client {
  readonly name: string
  /** A shell script, in an empty directory; $D holds what services.ts prepared. */
  readonly script: (host: string) => string
  /** Part of what it prints when it was served. */
  readonly served: string
  /** Of the rule; by default the web's two, which a rule without a port allows. */
  readonly port?: number
  /** Where they are not `api.test` and `other.test`. `rule` is what lists `allowed`. */
  readonly hosts?: { readonly allowed: string; readonly rule: string; readonly denied: string }
  /** The name server of the host answers addresses over UDP alone, so this client does not get far there. */
  readonly notOnHost?: true
}

const web = (host: string): string => `http://${host}/say`
const node = (program: string): string => `node -e '${program}'`
const python = (program: string): string => `/usr/bin/python3 -c '${program}'`

const client = (name: string, script: Client['script'], more: Partial<Client> = {}): Client => ({
  name,
  script,
  served: 'from=',
  ...more,
})

const curl = (host: string): string => `LC_ALL=C.UTF-8 curl -sS -m 20 ${web(host)}`
const named = (allowed: string, denied: string, rule = allowed) => ({ hosts: { allowed, rule, denied } })

export const CLIENTS: readonly Client[] = [
  client('curl, HTTP/1.1', curl),
  client('curl, HTTP/2 over TLS', (host) => `curl -sS -m 20 --cacert $D/ca.pem https://${host}/say`, {
    served: 'http=2.0',
  }),
  client('curl, upper case and a final dot', (host) => curl(`${host.toUpperCase()}.`)),
  client('curl, a name below a wildcard', curl, named('a.wild.test', 'wild.test', '*.wild.test')),
  client('curl, a name with an IPv6 address only', curl, named('six.test', 'six-other.test')),
  client('curl, a name with addresses of both families', curl, named('both.test', 'both-other.test')),
  client('curl, another alphabet', curl, named('bücher.test', 'zeitung-süd.test', 'xn--bcher-kva.test')),
  client('wget', (host) => `wget -q -T 20 -t 1 -O - ${web(host)}`),
  client('busybox wget', (host) => `busybox wget -q -O - ${web(host)}`),
  client('git over HTTP', (host) => `git clone -q http://${host}/repo.git got && cat got/note`, { served: 'noted' }),
  client('ssh', (host) => `$D/ssh root@${host} echo from=ssh`, { port: 22 }),
  client(
    'git over ssh',
    (host) => `GIT_SSH_COMMAND=$D/ssh git clone -q ssh://root@${host}$D/repo.git got && cat got/note`,
    {
      served: 'noted',
      port: 22,
    },
  ),
  client('node, fetch', (host) => node(`fetch("${web(host)}").then((r) => r.text()).then(console.log)`)),
  client('node, http', (host) => node(`require("http").get("${web(host)}", (r) => r.pipe(process.stdout))`)),
  client('node, c-ares', (host) =>
    node(
      `require("dns").promises.resolve4("${host}").then(([a]) => fetch("http://" + a + "/say")).then((r) => r.text()).then(console.log)`,
    ),
  ),
  client(
    'node, net',
    (host) =>
      node(`require("net").connect(7, "${host}").on("data", (d) => { process.stdout.write(d); process.exit() })`),
    { served: 'hello', port: 7 },
  ),
  client('Python, urllib', (host) => python(`import urllib.request as u; print(u.urlopen("${web(host)}").read())`)),
  client('Python, requests', (host) => python(`import requests; print(requests.get("${web(host)}").text)`)),
  client('Python, aiohttp', (host) =>
    python(`import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session, session.get("${web(host)}") as response: print(await response.text())
asyncio.run(main())`),
  ),
  client('Java, HttpClient', (host) => `java -XX:TieredStopAtLevel=1 -cp $D Say ${web(host)}`),
  client('Go, its own resolver', (host) => `GODEBUG=netdns=go $D/say-go ${web(host)}`),
  client("Go, the C library's resolver", (host) => `GODEBUG=netdns=cgo $D/say-go ${web(host)}`),
  client('Rust', (host) => `$D/say-rust ${host} 80`),
  client('C, glibc', (host) => `$D/say-glibc ${host} 80`),
  client('C, musl, static', (host) => `$D/say-musl ${host} 80`),
  client(
    'psql',
    (host) => `PGCONNECT_TIMEOUT=20 psql -h ${host} -U nobody -d postgres -Atc "select 'from=' || version()"`,
    { served: 'from=PostgreSQL', port: 5432 },
  ),
  client('redis-cli', (host) => `redis-cli -h ${host} ping`, { served: 'PONG', port: 6379 }),
  client('dig', (host) => `dig +time=5 +tries=1 ${host}`, { served: 'status: NOERROR' }),
  client('dig, TCP', (host) => `dig +tcp +time=5 +tries=1 ${host}`, { served: 'status: NOERROR', notOnHost: true }),
  client('nc, the server speaks first', (host) => `echo hi | nc -N -w 20 ${host} 7`, { served: 'hello\nhi', port: 7 }),
  client(
    'npm',
    (host) =>
      `npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry http://${host}/npm/ tiny >log 2>&1; tail -n 5 log; node -p 'require("tiny")'`,
  ),
  client(
    'pip',
    (host) =>
      `/usr/bin/python3 -m pip install -q --disable-pip-version-check --retries 0 --target got --index-url http://${host}/pip/ --trusted-host ${host} tiny 2>&1
       PYTHONPATH=got ${python('import tiny; print(tiny.said)')}`,
  ),
  client(
    'Chromium',
    (host) =>
      `chromium-headless-shell --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/profile --dump-dom ${web(host)} 2>&1`,
  ),
]
