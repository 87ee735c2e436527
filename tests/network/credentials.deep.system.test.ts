/** Credentials that stay outside: every client, the other engine, other lines of node, the other ways out, and load. */
import { readlinkSync, realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { execa } from 'execa'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { kernelThat } from '../support/kernel.ts'
import { describeWith } from '../support/needs.ts'
import { newerNodes } from '../support/nodes.ts'
import { packageCopy } from '../support/package.ts'
import { readOr } from '../support/processes.ts'
import { makeNpmPackage, makeRepository } from './services.ts'
import { curl, NETWORK, openTerminationWorld, SECRET, type TerminationWorld } from './termination-world.ts'
import { eachWay, OTHER_WAYS, python, shell, type Way } from './ways.ts'

let site: TerminationWorld

/** KiB, while it lives. */
async function peakOf(pid: number): Promise<number> {
  const peak = (): number => Number(/^VmHWM:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1] ?? 0)
  for (let last = peak(); ; ) {
    await sleep(50)
    const now = peak()
    if (now === 0) return last
    last = now
  }
}

describeWith(['root', 'git'], 'credentials that stay outside', () => {
  beforeAll(async () => {
    site = await openTerminationWorld()
    const web = join(site.directory, 'web')
    await makeRepository(site.directory, web)
    await makeNpmPackage(site.directory, web, 'https')
  })
  afterAll(() => site?.close())

  const hello = async (way: Way) => (await site.run(curl('https://api.test/hello'), { way })).stdout
  eachWay('the header arrives', async (way) => expect(await hello(way)).toContain(`Bearer ${SECRET}`), OTHER_WAYS)

  test.each(
    Object.entries({
      curl: 'curl -sS https://api.test/client',
      git: 'git clone -q https://api.test/repo.git cloned && cat cloned/note',
      node: `node -e 'fetch("https://api.test/client").then((r) => r.text()).then(console.log)'`,
      python: `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("https://api.test/client").read().decode())'`,
      requests: `/usr/bin/python3 -c 'import requests; print(requests.get("https://api.test/client").text)'`,
      npm: `npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry https://api.test/npm/ tiny >log 2>&1; tail -n 5 log; node -p 'require("tiny")'`,
      openssl: `printf 'GET /client HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -servername api.test -connect api.test:443 2>/dev/null`,
    }),
  )('%s trusts the certificates', async (_, script) => {
    const { stdout, stderr } = await site.run(shell(`cd "$HOME"; ${script}`), { words: ['--timeout', '90s'] })
    expect({ stdout, stderr }).toEqual({
      stderr: '',
      stdout: expect.stringMatching(/Bearer hidden|^noted\n$|from=tiny/),
    })
  })

  test('by a proxy and without nftables it is the same', async () => {
    const script = `curl -sSm 20 https://api.test/proxied | grep -c Bearer; curl -sSm 20 http://api.test/plain-proxied; curl -sSm 20 -x socks5h://198.18.0.1:1080 https://api.test/socks | grep -c Bearer`
    const kernel = await kernelThat([
      { refuses: ['socket'], with: 'EPROTONOSUPPORT', only: { argument: 2, value: 12 } },
    ])
    for (const through of [site.world.through, [...site.world.through, ...kernel]]) {
      const { stdout } = await site.run(shell(script), { network: `${NETWORK}\nproxy: on`, through })
      expect(stdout).toMatch(/^1\nllm-do: api.test is reached by TLS only[^\n]*\n1\n$/)
    }
  })

  test('long bodies arrive whole both ways, with slow readers, in bounded memory', async () => {
    const script = `
      head -c 50000000 /dev/zero | curl -sS -m 60 -T - https://api.test/upload | grep -o '"size":[0-9]*'
      head -c 3000000 /dev/zero | curl -sS -m 60 -H 'Expect: 100-continue' --data-binary @- https://api.test/upload | grep -o '"size":[0-9]*'
      curl -sS -m 60 https://api.test/large | wc -c
      curl -sS -m 60 --limit-rate 20M https://api.test/large | wc -c
      curl -sS -m 60 https://api.test/closing https://api.test/closing https://api.test/large | wc -c
      curl -sS -m 60 https://api.test/cut; echo " $?"`
    const running = site.run(['bash', '-c', script], { words: ['--timeout', '120s'] })
    const terminator = await site.terminator()
    const [{ stdout }, peak] = await Promise.all([running, peakOf(terminator)])
    expect(stdout).toBe(`"size":50000000\n"size":3000000\n67108864\n67108864\n${67108864 + 16}\nbegun 18\n`)
    expect(peak).toBeLessThan(256 * 1024)
  })

  test('a hundred connections are served side by side, and six hundred one after the other', async () => {
    const words = ['--timeout', '120s']
    const sideBySide = `for i in $(seq 100); do curl -sS -m 60 https://api.test/at-once?$i & done | grep -c 'Bearer hidden'; wait`
    expect((await site.run(['bash', '-c', sideBySide], { words })).stdout).toBe('100\n')
    const script = `
import ssl, socket
context = ssl.create_default_context()
def once(i):
    with context.wrap_socket(socket.create_connection(('api.test', 443), 20), server_hostname='api.test') as s:
        s.sendall(b'GET /again HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n')
        data = b''
        while (got := s.recv(65536)): data += got
        return b'Bearer hidden' in data
print(sum(once(i) for i in range(600)))`
    expect((await site.run(python(script), { words })).stdout).toBe('600\n')
  })

  describeWith('newer-nodes', 'with another line of node', () => {
    // Sockets are handed over in the form in which node's own processes exchange them, which no document promises.
    test.each(newerNodes())('the header arrives by node $major', async ({ file }) => {
      const [copy, gate] = [await packageCopy(), await temporaryDirectory()]
      copy.recordNode(file)
      const script = `curl -sS -m 20 https://api.test/hello; until [ -e ${gate}/open ]; do sleep 0.1; done`
      const argv = ['--json', '--profile', await site.profileOf(NETWORK), '--ro', gate, '--', ...shell(script)]
      const [program = '', ...words] = [...site.world.through, join(copy.root, 'bin/llm-do-exec'), ...argv]
      const env = { TOKEN: SECRET, PATH: process.env['PATH'], HOME: gate }
      const running = execa(program, words, { cwd: '/', env, extendEnv: false, reject: false })
      const terminator = await site.terminator()
      const node = readlinkSync(`/proc/${terminator}/exe`)
      await writeFile(join(gate, 'open'), '')
      const { stdout } = JSON.parse((await running).stdout) as Result
      await copy.remove()
      expect([node, stdout]).toEqual([realpathSync(file), expect.stringContaining(`Bearer ${SECRET}`)])
    })
  })
})
