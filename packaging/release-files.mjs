// The files of a release, of what this checkout has built, the same bytes each time from the same sources:
//   SOURCE_DATE_EPOCH=SECONDS node packaging/release-files.mjs DIRECTORY x64=BIN arm64=BIN
//
//   llm-do-exec-VERSION.tgz, llm-do-exec-fleet-VERSION.tgz,
//   llm-do-exec-linux-ARCH-VERSION.tgz                            for npm
//   llm-do-exec_VERSION_ARCH.deb                                  for Debian and Ubuntu
//   llm-do-exec-VERSION-linux-ARCH.tar.gz                         to unpack below a prefix: bin/, lib/, share/
//   llm_do_exec-VERSION-py3-none-any.whl, llm_do_exec-VERSION.tar.gz   for Python
//   llm-do-exec-VERSION.spdx.json                                 what they consist of
//   SHA256SUMS, NOTES.md
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { facts, root } from './facts.mjs'
import { notes } from './notes.mjs'
import { pack } from './pack.mjs'
import { sbom } from './sbom.mjs'

const { SOURCE_DATE_EPOCH: seconds } = process.env
const [given, ...programs] = process.argv.slice(2)
if (given === undefined || programs.length === 0 || seconds === undefined)
  throw new Error('usage: SOURCE_DATE_EPOCH=SECONDS release-files.mjs DIRECTORY x64=BIN arm64=BIN')
const directory = resolve(given)
const { version } = facts
const DEB_ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }

const run = (script, words, env) =>
  execFileSync(script, words, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'inherit'] })

/** Where it is unpacked is not known, so the AppArmor profile in it is for the usual place. */
function packTree(arch, bin) {
  const name = `llm-do-exec-${version}-linux-${arch}`
  const stage = mkdtempSync(join(tmpdir(), 'llm-do-release-'))
  try {
    const env = { BIN: bin, DESTDIR: stage, PREFIX: '/usr/local', WITHOUT_COMPILED: '1' }
    run(join(root, 'packaging/install'), [], env)
    pack(join(stage, 'usr/local'), { file: join(directory, `${name}.tar.gz`), top: name, seconds })
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
}

run(process.execPath, [join(root, 'packaging/npm.mjs'), directory, ...programs])
run(join(root, 'packaging/make-python'), [directory])
for (const [arch, bin] of programs.map((one) => one.split('='))) {
  const debArch = DEB_ARCHITECTURES[arch]
  run(join(root, 'packaging/make-deb'), [join(directory, `llm-do-exec_${version}_${debArch}.deb`), debArch], {
    BIN: resolve(root, bin),
  })
  packTree(arch, resolve(root, bin))
}

/** In the order of the alphabet. */
const sumsOf = (names) =>
  names.sort().map((name) => ({
    name,
    sum: createHash('sha256')
      .update(readFileSync(join(directory, name)))
      .digest('hex'),
  }))

const packed = sumsOf(readdirSync(directory))
writeFileSync(join(directory, `llm-do-exec-${version}.spdx.json`), sbom(packed, Number(seconds)))
const sums = sumsOf(readdirSync(directory))
writeFileSync(join(directory, 'SHA256SUMS'), sums.map(({ sum, name }) => `${sum}  ${name}\n`).join(''))
writeFileSync(join(directory, 'NOTES.md'), notes(sums))
