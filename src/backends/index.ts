/** The backends: one row each. Whatever differs between them is a question to a row, never a comparison of names. */
import type { HostFacts } from '../host/facts.ts'
import type { BackendOffer, Offers } from '../plan/offers.ts'
import { BACKEND_NAMES, type BackendName } from '../policy/values.ts'
import type { Backend, OfferQuestion } from './backend.ts'
import { docker } from './docker/index.ts'
import { keyRefusal, keyWarnings } from './key-support.ts'
import { namespace } from './namespace/index.ts'
import { noNamespaces } from './no-namespaces/index.ts'
import { processBackend } from './process/index.ts'
import { wasm } from './wasm/index.ts'

const TABLE: Readonly<Record<BackendName, Backend>> = {
  namespace,
  docker,
  wasm,
  'no-namespaces': noNamespaces,
  process: processBackend,
}

export const backendNamed = (name: BackendName): Backend => TABLE[name]

/** In the order in which `auto` tries them and reports list them. */
export const BACKENDS: readonly Backend[] = BACKEND_NAMES.map(backendNamed)

/** Everything each backend can enforce on this host, whatever the policy. */
export function offersOf(facts: HostFacts): readonly (Offers & { readonly name: BackendName })[] {
  return BACKENDS.map(({ name, offers }) => ({ name, ...offers(facts) }))
}

/** The offers of each backend for this policy: all that planning knows of the backends. */
export function offersFor(question: OfferQuestion): readonly BackendOffer[] {
  return BACKENDS.map(({ name, traits, offers, terms }) => {
    const own = offers(question.facts)
    const { barred = own.unusable, warnings = [], ...others } = terms?.(own, question) ?? {}
    return {
      ...{ name, traits, ...own, ...others },
      barred: keyRefusal(name, question.policy) ?? barred,
      warnings: [...warnings, ...keyWarnings(name, question.policy)],
    }
  })
}
