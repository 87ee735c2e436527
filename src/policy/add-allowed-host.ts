/**
 * Adds a host to a profile that a person has written. Comments stay.
 * Edge: the file system, randomness (a temporary name).
 */
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isMap, parseDocument } from 'yaml'
import { randomHex } from '../os/random-id.ts'
import { listProfiles, type ProfileDirectories } from './load.ts'

/** The file of a profile that is the user's own; undefined for one that comes with the program. */
export function profileToChange(name: string, cwd: string, directories: ProfileDirectories): string | undefined {
  const named = listProfiles(directories).find((profile) => profile.name === name)
  if (named !== undefined) return named.from === 'user' ? named.file : undefined
  return name.includes('/') ? resolve(cwd, name) : undefined
}

const NETWORK = ['sandbox', 'network']
const ALLOW = [...NETWORK, 'allow']

/** @returns why it could not be written */
export function addAllowedHost(profile: string, host: string): string | undefined {
  try {
    const file = realpathSync(profile)
    const document = parseDocument(readFileSync(file, 'utf8'))
    const network = document.getIn(NETWORK)
    if (document.errors.length > 0) return `${profile}: it cannot be read as a profile`
    if (!isMap(network))
      document.setIn(
        NETWORK,
        document.createNode({ ...(network === 'restricted' && { mode: network }), allow: [host] }),
      )
    else if (document.hasIn(ALLOW)) document.addIn(ALLOW, host)
    else document.setIn(ALLOW, document.createNode([host]))
    replace(file, document.toString())
    return undefined
  } catch (error) {
    return `${profile}: ${(error as Error).message}`
  }
}

/** By a rename, so that readers see the whole. */
function replace(file: string, text: string): void {
  const temporary = `${file}.${randomHex(8)}`
  try {
    writeFileSync(temporary, text, { flag: 'wx', mode: statSync(file).mode & 0o777 })
    renameSync(temporary, file)
  } finally {
    rmSync(temporary, { force: true })
  }
}
