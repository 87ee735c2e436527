import { expect, test } from 'vitest'
import { loopbackPorts } from '../../src/report/loopback.ts'

test.each([
  ["curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server", [8080]],
  ['connect ECONNREFUSED ::1:3000\nconnect ECONNREFUSED 127.0.0.1:3000', [3000]],
  ['connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused', [5432]],
  ["HTTPConnectionPool(host='localhost', port=11434): Connection refused", [11_434]],
  ['bash: line 1: /dev/tcp/localhost/6379: Connection refused', [6379]],
  ['listening on localhost:8080', []],
  ['example.com:8080: Connection refused', []],
  ['127.0.0.1:99999: Connection refused', []],
])('%s: %j', (text, ports) => {
  expect(loopbackPorts(text)).toEqual(ports)
})
