/**
 * Rules to classic BPF. Pure.
 *
 * Theory: first a graph of decisions, each one made once (equal pieces are shared), then a layout of that graph.
 *   machine? -> number: balanced search over ranges of numbers with the same decision -> tests on arguments -> return
 * The kernel runs a filter for every possible number when it is installed (to cache the plain "allow" ones), so short paths make a
 * cheap installation; and a linear list of 300 comparisons costs ten times as much.
 * The layout goes backwards from the last instruction: what is jumped to is always placed already, and conditional jumps, which
 * reach only 255 instructions, get a long jump in between when their target is further away.
 */
import { ACTION, AUDIT_ARCH, encode, type Instruction, OFFSET, OPCODE } from './bpf.ts'
import { ERRNO } from './errno.ts'
import {
  type Clause,
  clausesFor,
  compatClausesFor,
  type ProfileName,
  type SeccompRules,
  type SetName,
  shippedRules,
  type Test,
} from './rules.ts'
import { type Arch, COMPAT, MAX_SYSCALL } from './syscalls.ts'

export interface Filter {
  /** `struct sock_filter` after `struct sock_filter`; empty for `off`. */
  readonly filter: Uint8Array
  readonly instructions: number
}

/** A decision and everything that follows from it. `id` is equal for equal decisions. */
type Node = { readonly id: number } & (
  | { readonly is: 'ret'; readonly value: number }
  | { readonly is: 'load'; readonly offset: number; readonly mask: number; readonly next: Node }
  | { readonly is: 'jump'; readonly code: number; readonly value: number; readonly yes: Node; readonly no: Node }
)
type JumpCode = typeof OPCODE.jumpEqual | typeof OPCODE.jumpGreaterOrEqual | typeof OPCODE.jumpAnyBit

/** Makes nodes, and gives the same one back for the same decision. */
function graph() {
  const made = new Map<string, Node>()
  const once = (key: string, make: (id: number) => Node): Node => {
    const node = made.get(key) ?? make(made.size)
    made.set(key, node)
    return node
  }
  return {
    ret: (value: number) => once(`ret ${value}`, (id) => ({ id, is: 'ret', value })),
    load: (offset: number, mask: number, next: Node) =>
      once(`load ${offset} ${mask} ${next.id}`, (id) => ({ id, is: 'load', offset, mask, next })),
    jump: (code: JumpCode, value: number, { yes, no }: { readonly yes: Node; readonly no: Node }): Node =>
      yes === no
        ? yes
        : once(`${code} ${value} ${yes.id} ${no.id}`, (id) => ({ id, is: 'jump', code, value, yes, no })),
  }
}
type Graph = ReturnType<typeof graph>

/** Everything: no mask needed. */
const WHOLE = 0xffff_ffff

function nodeForTest(g: Graph, test: Test, { holds, fails }: { readonly holds: Node; readonly fails: Node }): Node {
  const offset =
    OFFSET.firstArgument + test.argument * OFFSET.argumentBytes + (test.half === 'high' ? OFFSET.highHalf : 0)
  if ('anyBit' in test) return g.load(offset, WHOLE, g.jump(OPCODE.jumpAnyBit, test.anyBit, { yes: holds, no: fails }))
  const [values, found, missed] = 'among' in test ? [test.among, holds, fails] : [test.notAmong, fails, holds]
  const comparisons = values.reduceRight((no, value) => g.jump(OPCODE.jumpEqual, value, { yes: found, no }), missed)
  return g.load(offset, test.mask ?? WHOLE, comparisons)
}

function nodeForClauses(g: Graph, clauses: readonly Clause[]): Node {
  return clauses.reduceRight((otherwise, { errno, when }) => {
    const refused = g.ret(ACTION.errno | ERRNO[errno])
    return (when ?? []).reduceRight((holds, test) => nodeForTest(g, test, { holds, fails: otherwise }), refused)
  }, g.ret(ACTION.allow))
}

/** All numbers from `first` up to the next range. */
interface Range {
  readonly first: number
  readonly node: Node
}

function ranges(g: Graph, clauses: ReadonlyMap<number, readonly Clause[]>): readonly Range[] {
  const unknown = g.ret(ACTION.errno | ERRNO.ENOSYS)
  const each = Array.from({ length: MAX_SYSCALL + 2 }, (_, number) => {
    const known = clauses.get(number)
    return { first: number, node: known === undefined ? unknown : nodeForClauses(g, known) }
  })
  return each.filter(({ node }, index) => node !== each[index - 1]?.node)
}

/** Longest row of single comparisons at a leaf of the search: each saves a branch of the tree and lengthens the path by one. */
const MAX_ROW = 3

/** A few single numbers in a stretch that is otherwise the same: cheaper one by one than by halving. */
function row(g: Graph, part: readonly Range[], end: number): Node | undefined {
  const isSingle = (index: number) => (part[index + 1]?.first ?? end) - (part[index]?.first ?? 0) === 1
  const rest = part.find((_, index) => !isSingle(index))?.node ?? part[0]?.node
  const exceptions = part.filter(({ node }) => node !== rest)
  const allSingle = part.every(({ node }, index) => node === rest || isSingle(index))
  if (rest === undefined || !allSingle || exceptions.length > MAX_ROW) return undefined
  return exceptions.reduceRight((no, { first, node }) => g.jump(OPCODE.jumpEqual, first, { yes: node, no }), rest)
}

/** @param end first number after the part, or infinity */
function search(g: Graph, part: readonly Range[], end: number): Node {
  const short = row(g, part, end)
  if (short !== undefined) return short
  const middle = Math.floor(part.length / 2)
  const upper = part.slice(middle)
  const border = upper[0]?.first ?? end
  return g.jump(OPCODE.jumpGreaterOrEqual, border, {
    yes: search(g, upper, end),
    no: search(g, part.slice(0, middle), border),
  })
}

/** Highest number of instructions that jt and jf can skip. */
const SHORT_REACH = 255

function layOut(root: Node): readonly Instruction[] {
  const backwards: Instruction[] = []
  const placed = new Map<number, number>()
  const emit = (code: number, k: number, jt = 0, jf = 0) => backwards.push({ code, jt, jf, k }) - 1
  /** Instructions to skip from the next one emitted, after `extra` more, to `target`. */
  const distance = (target: number, extra = 0) => backwards.length + extra - target - 1
  const nearer = (target: number, extra: number) =>
    distance(target, extra) > SHORT_REACH ? emit(OPCODE.jump, distance(target)) : target

  const emitNode = (node: Node): number => {
    if (node.is === 'ret') return emit(OPCODE.ret, node.value)
    if (node.is === 'load') {
      const next = emitOnce(node.next)
      if (distance(next) > 0) emit(OPCODE.jump, distance(next))
      if (node.mask !== WHOLE) emit(OPCODE.and, node.mask)
      return emit(OPCODE.load, node.offset)
    }
    const targets = [emitOnce(node.yes), emitOnce(node.no)] as const
    // The second long jump, when there is one, pushes the first target one further away.
    const yes = nearer(targets[0], 1)
    const no = nearer(targets[1], 0)
    return emit(node.code, node.value, distance(yes), distance(no))
  }
  const emitOnce = (node: Node): number => {
    const at = placed.get(node.id) ?? emitNode(node)
    placed.set(node.id, at)
    return at
  }
  emitOnce(root)
  return backwards.reverse()
}

/** The instructions of a filter, for one machine. */
export function compileRules(rules: SeccompRules, arch: Arch, always: readonly SetName[] = []): readonly Instruction[] {
  const g = graph()
  const number = search(g, ranges(g, clausesFor(rules, arch, always)), Number.POSITIVE_INFINITY)
  const native = g.load(OFFSET.number, WHOLE, number)
  const foreign = nodeForForeign(g, compatClausesFor(rules, arch, always), COMPAT[arch].audit)
  return layOut(g.load(OFFSET.arch, WHOLE, g.jump(OPCODE.jumpEqual, AUDIT_ARCH[arch], { yes: native, no: foreign })))
}

/** Calls of another machine end the process, but for 32-bit programs of this one where there are clauses for them. */
function nodeForForeign(g: Graph, clauses: ReadonlyMap<number, readonly Clause[]> | undefined, audit: number): Node {
  const end = g.ret(ACTION.killProcess)
  if (clauses === undefined) return end
  const known = [...clauses].reduceRight<Node>(
    (no, [number, refused]) => g.jump(OPCODE.jumpEqual, number, { yes: nodeForClauses(g, refused), no }),
    g.ret(ACTION.allow),
  )
  return g.jump(OPCODE.jumpEqual, audit, { yes: g.load(OFFSET.number, WHOLE, known), no: end })
}

/**
 * The filter of a profile, ready for seccomp(2), bwrap's --seccomp or a plan.
 * @param profile a shipped name, `off` for none, or the rules of a user's file
 */
export function compileProfile(request: {
  readonly profile: ProfileName | 'off' | SeccompRules
  readonly arch: Arch
  /** Sets that are kept whatever the profile says. */
  readonly always?: readonly SetName[]
}): Filter {
  const { profile, arch, always = [] } = request
  if (profile === 'off' && always.length === 0) return { filter: new Uint8Array(0), instructions: 0 }
  const program = compileRules(typeof profile === 'string' ? shippedRules(profile) : profile, arch, always)
  return { filter: encode(program), instructions: program.length }
}

/** Two lower-case digits a byte, as plans and launch files carry a filter. */
export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
