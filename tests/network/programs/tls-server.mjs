// The words of a server of HTTPS in the world of a test: DIRECTORY PORT LOG NAME... NAME.key and NAME.pem in DIRECTORY are the certificates, by
// SNI, and the first one without. LOG gets a line for each request.
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'

const [, , own, port, log, ...names] = process.argv
export const directory = own
export const note = (line) => appendFileSync(log, `${line}\n`)

const filesOf = (name) => ({
  key: readFileSync(join(directory, `${name}.key`)),
  cert: readFileSync(join(directory, `${name}.pem`)),
})
const contexts = Object.fromEntries(names.map((name) => [name, createSecureContext(filesOf(name))]))

export const server = createServer({
  ...filesOf(names[0]),
  SNICallback: (name, done) => done(null, contexts[name] ?? contexts[names[0]]),
})
export const listen = () => server.listen(Number(port), '::', () => process.stdout.write('ready\n'))
