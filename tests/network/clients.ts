/** Real clients, and what each prints when it was served: data for clients.system.test.ts. */

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
  /** In the run with the other engine, in the cached one and in the warm one, too. */
  readonly short?: true
  /** The name server of the host is asked by UDP alone, so that this client does not get far there. */
  readonly notOnHost?: true
}

const SAID = 'from='
const WEB = (host: string): string => `http://${host}/say`

const node = (program: string): string => `node -e '${program.replaceAll(/\n\s*/g, ' ')}'`
const python = (program: string): string => `/usr/bin/python3 -c '${program}'`

export const CLIENTS: readonly Client[] = [
  { name: 'curl, HTTP/1.1', script: (host) => `curl -sS -m 20 ${WEB(host)}`, served: SAID, short: true },
  {
    name: 'curl, HTTP/1.1 over TLS',
    script: (host) => `curl -sS -m 20 --http1.1 --cacert $D/ca.pem https://${host}/say`,
    served: 'http=1.1',
  },
  {
    name: 'curl, HTTP/2 over TLS',
    script: (host) => `curl -sS -m 20 --cacert $D/ca.pem https://${host}/say`,
    served: 'http=2.0',
    short: true,
  },
  {
    name: 'curl, upper case and a final dot',
    script: (host) => `curl -sS -m 20 ${WEB(`${host.toUpperCase()}.`)}`,
    served: SAID,
  },
  {
    name: 'curl, a name below a wildcard',
    script: (host) => `curl -sS -m 20 ${WEB(host)}`,
    served: SAID,
    hosts: { allowed: 'a.wild.test', rule: '*.wild.test', denied: 'wild.test' },
  },
  {
    name: 'curl, a name with an IPv6 address only',
    script: (host) => `curl -sS -m 20 ${WEB(host)}`,
    served: SAID,
    hosts: { allowed: 'six.test', rule: 'six.test', denied: 'six-other.test' },
  },
  {
    name: 'curl, a name with addresses of both families',
    script: (host) => `curl -sS -m 20 ${WEB(host)}`,
    served: SAID,
    hosts: { allowed: 'both.test', rule: 'both.test', denied: 'both-other.test' },
  },
  {
    name: 'curl, a name in another alphabet',
    script: (host) => `LC_ALL=C.UTF-8 curl -sS -m 20 ${WEB(host)}`,
    served: SAID,
    hosts: { allowed: 'bücher.test', rule: 'xn--bcher-kva.test', denied: 'zeitung-süd.test' },
  },
  { name: 'wget', script: (host) => `wget -q -T 20 -t 1 -O - ${WEB(host)}`, served: SAID },
  { name: 'busybox wget', script: (host) => `busybox wget -q -O - ${WEB(host)}`, served: SAID },
  {
    name: 'git over HTTP',
    script: (host) => `git clone -q http://${host}/repo.git got && cat got/note`,
    served: 'noted',
    short: true,
  },
  { name: 'ssh', script: (host) => `$D/ssh root@${host} echo from=ssh`, served: 'from=ssh', port: 22 },
  {
    name: 'git over ssh',
    script: (host) => `GIT_SSH_COMMAND=$D/ssh git clone -q ssh://root@${host}$D/repo.git got && cat got/note`,
    served: 'noted',
    port: 22,
  },
  {
    name: 'node, fetch',
    script: (host) => node(`fetch("${WEB(host)}").then((r) => r.text()).then(console.log)`),
    served: SAID,
    short: true,
  },
  {
    name: 'node, http',
    script: (host) => node(`require("http").get("${WEB(host)}", (r) => r.pipe(process.stdout))`),
    served: SAID,
  },
  {
    name: 'node, http and IPv4 only',
    script: (host) =>
      node(`require("http").get({ host: "${host}", family: 4, path: "/say" }, (r) => r.pipe(process.stdout))`),
    served: SAID,
  },
  {
    name: 'node, c-ares',
    script: (host) =>
      node(`require("dns").promises.resolve4("${host}").then(([a]) => fetch("http://" + a + "/say"))
            .then((r) => r.text()).then(console.log)`),
    served: SAID,
    short: true,
  },
  {
    name: 'node, net',
    script: (host) =>
      node(`require("net").connect(7, "${host}").on("data", (d) => { process.stdout.write(d); process.exit() })`),
    served: 'hello',
    port: 7,
  },
  {
    name: 'Python, urllib',
    script: (host) => python(`import urllib.request as u; print(u.urlopen("${WEB(host)}", timeout=20).read())`),
    served: SAID,
    short: true,
  },
  {
    name: 'Python, requests',
    script: (host) => python(`import requests; print(requests.get("${WEB(host)}", timeout=20).text)`),
    served: SAID,
  },
  {
    name: 'Python, aiohttp',
    script: (host) =>
      python(`import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session, session.get("${WEB(host)}") as response:
        print(await response.text())
asyncio.run(main())`),
    served: SAID,
  },
  {
    name: 'Python, asyncio',
    script: (host) =>
      python(`import asyncio
async def main():
    reader, writer = await asyncio.open_connection("${host}", 7)
    print(await reader.readline())
    writer.close()
asyncio.run(main())`),
    served: 'hello',
    port: 7,
  },
  { name: 'Java, HttpClient', script: (host) => `java -XX:TieredStopAtLevel=1 -cp $D Say ${WEB(host)}`, served: SAID },
  {
    name: 'Go, its own resolver',
    script: (host) => `GODEBUG=netdns=go $D/say-go ${WEB(host)}`,
    served: SAID,
    short: true,
  },
  { name: "Go, the C library's resolver", script: (host) => `GODEBUG=netdns=cgo $D/say-go ${WEB(host)}`, served: SAID },
  { name: 'Rust', script: (host) => `$D/say-rust ${host} 80`, served: SAID },
  { name: 'C, glibc', script: (host) => `$D/say-glibc ${host} 80`, served: SAID },
  { name: 'C, musl, static', script: (host) => `$D/say-musl ${host} 80`, served: SAID, short: true },
  {
    name: 'psql',
    script: (host) => `PGCONNECT_TIMEOUT=20 psql -h ${host} -U nobody -d postgres -Atc "select 'from=' || version()"`,
    served: 'from=PostgreSQL',
    port: 5432,
    short: true,
  },
  { name: 'redis-cli', script: (host) => `redis-cli -h ${host} ping`, served: 'PONG', port: 6379 },
  { name: 'dig', script: (host) => `dig +time=5 +tries=1 ${host}`, served: 'status: NOERROR' },
  {
    name: 'dig, TCP',
    script: (host) => `dig +tcp +time=5 +tries=1 ${host}`,
    served: 'status: NOERROR',
    notOnHost: true,
  },
  {
    name: 'nc, the server speaks first',
    script: (host) => `echo hi | nc -N -w 20 ${host} 7`,
    served: 'hello\nhi',
    port: 7,
    short: true,
  },
  {
    name: 'npm',
    script: (host) =>
      `npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry http://${host}/npm/ tiny >log 2>&1; tail -n 5 log; node -p 'require("tiny")'`,
    served: 'from=tiny',
  },
  {
    name: 'pip',
    script: (host) =>
      `/usr/bin/python3 -m pip install -q --disable-pip-version-check --retries 0 --target got --index-url http://${host}/pip/ --trusted-host ${host} tiny 2>&1
       PYTHONPATH=got ${python('import tiny; print(tiny.said)')}`,
    served: 'from=tiny',
  },
  {
    name: 'Chromium',
    script: (host) =>
      `chromium-headless-shell --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/profile --dump-dom ${WEB(host)} 2>&1`,
    served: SAID,
  },
]
