/** Programs that print what the native part answers: `make drivers` builds them, with AddressSanitizer and UBSan, and `make test` does before it begins. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const DRIVERS = join(import.meta.dirname, '../../build/drivers')

/** The program of tests/NAME.c. */
export function driver(name: string): string {
  const program = join(DRIVERS, name)
  if (!existsSync(program)) throw new Error(`${program} is missing (hint: make drivers)`)
  return program
}
