import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const FUZZ = join(import.meta.dirname, '../../scripts/fuzz')

/** Names of the fuzz targets. */
export const TARGETS: readonly string[] = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.c') && file !== 'replay.c')
  .map((file) => file.slice(0, -'.c'.length))
  .sort()

/** The inputs of a target's corpus, in base64. */
export const corpusOf = (target: string): readonly string[] =>
  readFileSync(join(import.meta.dirname, `corpus/${target}.txt`), 'utf8')
    .split('\n')
    .slice(0, -1)
