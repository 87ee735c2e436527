// GitHub as its documentation has it, for repositories and the API (tls-server.mjs): serves DIRECTORY/web/*.git by Git's smart HTTP to a token
// that is the password of Basic, and the API to a token behind `Bearer`. All else is 401.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { directory, listen, note, server } from './tls-server.mjs'

const token = readFileSync(join(directory, 'token'), 'utf8').trim()

function isSignedIn(authorization = '', host) {
  const [scheme, value = ''] = authorization.split(' ')
  if (host === 'api.github.com') return scheme === 'Bearer' && value === token
  return scheme === 'Basic' && Buffer.from(value, 'base64').toString().split(':')[1] === token
}

/** RFC 3875. */
function serveGit(request, response) {
  const { pathname, search } = new URL(request.url, 'https://github.com')
  const env = {
    PATH: process.env.PATH,
    GIT_PROJECT_ROOT: join(directory, 'web'),
    GIT_HTTP_EXPORT_ALL: '1',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'http.receivepack',
    GIT_CONFIG_VALUE_0: 'true',
    REQUEST_METHOD: request.method,
    PATH_INFO: pathname,
    QUERY_STRING: search.slice(1),
    CONTENT_TYPE: request.headers['content-type'] ?? '',
    HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
    GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
  }
  const { stdin, stdout } = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  request.pipe(stdin)
  const chunks = []
  stdout.on('data', (bytes) => chunks.push(bytes))
  stdout.on('end', () => {
    const answer = Buffer.concat(chunks)
    const end = answer.indexOf('\r\n\r\n')
    const head = answer.subarray(0, end).toString().split('\r\n')
    const fields = Object.fromEntries(head.map((line) => line.split(': ')))
    response.writeHead(Number.parseInt(fields.Status ?? '200', 10), { 'Content-Type': fields['Content-Type'] })
    response.end(answer.subarray(end + 4))
  })
}

server.on('request', (request, response) => {
  const { method, url, headers } = request
  note(`${method} ${headers.host}${url}`)
  if (!isSignedIn(headers.authorization, headers.host))
    return response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="GitHub"' }).end()
  if (headers.host !== 'api.github.com') return serveGit(request, response)
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ login: 'ann' }))
})
listen()
