/**
 * A file and every name on the way to it, links included: who can exchange one of them decides which file it is.
 * Edge: the file system.
 */
import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/** The kernel's own bound (MAXSYMLINKS). */
const MOST_LINKS = 40

/** @throws NodeJS.ErrnoException where a step cannot be looked at; ELOOP where a link leads to itself */
export function namesOnTheWay(file: string): readonly string[] {
  const names: string[] = []
  const rest = stepsOf(isAbsolute(file) ? file : `${process.cwd()}/${file}`)
  let at = '/'
  let links = 0
  for (let step = rest.shift(); step !== undefined; step = rest.shift()) {
    const name = step === '..' ? dirname(at) : join(at, step)
    names.push(name)
    const target = lstatSync(name).isSymbolicLink() ? readlinkSync(name) : undefined
    if (target !== undefined) {
      links += 1
      if (links > MOST_LINKS) throw Object.assign(new Error(`ELOOP: ${file}`), { code: 'ELOOP' })
      rest.unshift(...stepsOf(target))
    }
    at = target === undefined ? name : isAbsolute(target) ? '/' : at
  }
  return names
}

const stepsOf = (path: string): string[] => path.split('/').filter((step) => step !== '' && step !== '.')
