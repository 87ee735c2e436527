/**
 * Sets of argument values as unions of cubes. A cube says of some arguments which bits have which value; it is what Docker's and
 * libseccomp's MASKED_EQ can ask for, with one question an argument. "Not refused" is turned into such a union exactly.
 */
import type { Argument, Clause, Test } from './rules.ts'

/** 64-bit: `(argument & mask) == value`. */
export interface Bits {
  readonly mask: bigint
  readonly value: bigint
}
/** All of these at once; an argument that is not named may be anything. */
export type Cube = ReadonlyMap<Argument, Bits>

const ANYTHING: Cube = new Map()
const WORD = 0xffff_ffff

function both(left: Cube, right: Cube): Cube | undefined {
  const merged = new Map(left)
  for (const [argument, { mask, value }] of right) {
    const other = merged.get(argument) ?? { mask: 0n, value: 0n }
    if (((other.value ^ value) & other.mask & mask) !== 0n) return undefined
    merged.set(argument, { mask: other.mask | mask, value: other.value | value })
  }
  return merged
}

/** Everything in `inner` is in `outer`. */
const contains = (outer: Cube, inner: Cube): boolean =>
  [...outer].every(([argument, { mask, value }]) => {
    const other = inner.get(argument)
    return other !== undefined && (other.mask & mask) === mask && (other.value & mask) === value
  })

function withoutContained(cubes: readonly Cube[]): readonly Cube[] {
  return cubes.filter((cube, index) =>
    cubes.every((other, at) => at === index || !contains(other, cube) || (contains(cube, other) && at > index)),
  )
}

const intersection = (left: readonly Cube[], right: readonly Cube[]): readonly Cube[] =>
  withoutContained(left.flatMap((a) => right.map((b) => both(a, b))).filter((cube) => cube !== undefined))

const WEIGHTS = Array.from({ length: 32 }, (_, bit) => (1 << bit) >>> 0)

/** Splits by one bit after the other. Bits in which all values agree come first: each of them settles half of what is left. */
function wordsNotAmong(values: readonly number[], mask: number): readonly { mask: number; value: number }[] {
  const isShared = (weight: number) => new Set(values.map((value) => value & weight)).size === 1
  const compared = WEIGHTS.filter((weight) => (mask & weight) !== 0)
  const order = [...compared.filter(isShared), ...compared.filter((weight) => !isShared(weight))]
  const split = (left: readonly number[], at: number, fixed: { mask: number; value: number }): (typeof fixed)[] => {
    const weight = order[at]
    if (left.length === 0) return [fixed]
    if (weight === undefined) return []
    return [0, weight].flatMap((value) =>
      split(
        left.filter((known) => (known & weight) >>> 0 === value),
        at + 1,
        { mask: (fixed.mask | weight) >>> 0, value: (fixed.value | value) >>> 0 },
      ),
    )
  }
  return split(values, 0, { mask: 0, value: 0 })
}

/** The union of cubes in which a test does not hold. */
function failing(test: Test): readonly Cube[] {
  const shift = test.half === 'high' ? 32n : 0n
  const cube = ({ mask, value }: { mask: number; value: number }): Cube =>
    new Map([[test.argument, { mask: BigInt(mask) << shift, value: BigInt(value) << shift }]])
  if ('anyBit' in test) return [cube({ mask: test.anyBit, value: 0 })]
  const mask = test.mask ?? WORD
  if ('notAmong' in test) return test.notAmong.map((value) => cube({ mask, value }))
  return wordsNotAmong(test.among, mask).map(cube)
}

/** The argument values that no clause refuses; empty when one refuses always, one cube without words when none ever does. */
export function allowedCubes(clauses: readonly Clause[]): readonly Cube[] {
  return clauses.reduce<readonly Cube[]>(
    (allowed, { when }) => intersection(allowed, withoutContained((when ?? []).flatMap(failing))),
    [ANYTHING],
  )
}
