/** Nodes of other lines than the one that runs the tests, which scripts/setup puts into build/nodes. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const DIRECTORY = join(import.meta.dirname, '../../build/nodes')

export interface Node {
  readonly major: number
  readonly file: string
}

export function newerNodes(): readonly Node[] {
  const majors = existsSync(DIRECTORY) ? readdirSync(DIRECTORY) : []
  return majors
    .map((major) => {
      const modules = join(DIRECTORY, major, 'node_modules')
      const name = existsSync(modules) ? readdirSync(modules).find((found) => found.startsWith('node-')) : undefined
      return { major: Number(major), file: join(modules, name ?? '', 'bin/node') }
    })
    .filter(({ file }) => existsSync(file))
}
