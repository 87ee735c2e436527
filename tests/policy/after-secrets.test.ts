import { describe, expect, test } from 'vitest'
import { keepSecrets } from '../../src/policy/after-secrets.ts'
import type { PolicyLayer } from '../../src/policy/layer.ts'
import { mergeLayers, OPTIONS } from './layers.ts'

const layer = (of: 'profile' | 'flag', values: object): PolicyLayer => ({
  layer: of,
  source: of === 'flag' ? '--allow-host' : 'p.yaml',
  directory: '/d',
  values: values as PolicyLayer['values'],
})
const SECRET = { zones: [{ name: 'keys', hostPath: '/k', secret: true }] }
const OPEN = { network: { allow: ['a.example'] } }
const DENY = { network: { afterSecrets: 'deny' } }
const ALLOW = layer('flag', { network: { afterSecrets: 'allow' } })

const kept = (...layers: readonly PolicyLayer[]) => {
  const policy = mergeLayers(layers, OPTIONS)
  return keepSecrets(policy, policy).network
}

describe('network.afterSecrets: deny', () => {
  test('takes the network of a profile away where a secret zone is shown, and says why', () => {
    expect(kept(layer('profile', { ...SECRET, ...OPEN }), layer('profile', DENY))).toEqual({
      mode: 'none',
      allow: [],
      deny: [],
      afterSecrets: 'deny',
      closedBy: 'zone keys is secret (network.afterSecrets: deny)',
    })
  })

  test.each([
    ['without a secret zone', [layer('profile', OPEN), layer('profile', DENY)]],
    ['without the key', [layer('profile', { ...SECRET, ...OPEN })]],
    ['where the caller takes it back', [layer('profile', { ...SECRET, ...OPEN }), layer('profile', DENY), ALLOW]],
  ])('leaves the network %s: the control', (_, layers) => {
    expect(kept(...layers)).toMatchObject({ mode: 'restricted', allow: ['a.example'] })
  })

  test.each([{ network: { allow: ['a.example'] } }, { network: 'host' }, { network: { local: [80] } }])(
    'contradicts %j of the caller, who has to choose',
    (values) => {
      expect(() => kept(layer('profile', { ...SECRET, ...DENY }), layer('flag', values))).toThrow(
        /--allow-host: expected no network, because zone keys is secret/,
      )
    },
  )

  test.each([
    ['a socket', { zones: [...SECRET.zones, { name: 's', hostPath: '/s', kind: 'socket' }] }],
    ['a zone with sockets', { zones: [...SECRET.zones, { name: 's', hostPath: '/s', sockets: true }] }],
  ])('refuses %s of this host, which may lead out', (_, values) => {
    expect(() => kept(layer('profile', { ...values, ...DENY }))).toThrow(/zone s: expected no socket of this host/)
    expect(kept(layer('profile', values)).mode).toBe('none')
  })

  test('holds for a zone that a worker has shown as an ordinary one', () => {
    const granted = mergeLayers([layer('profile', { ...SECRET, ...OPEN }), layer('profile', DENY)], OPTIONS)
    const narrowed = { ...granted, zones: granted.zones.map(({ secret: _, ...zone }) => zone) }
    expect(keepSecrets(narrowed, granted).network.mode).toBe('none')
  })
})
