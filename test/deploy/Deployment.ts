/** The files of the folder `deploy`, parsed as their programs parse them. */
import * as fs from "node:fs"
import * as Path from "node:path"
import { parse, parseAllDocuments } from "yaml"
import { assignmentsIn, parseUnit, type Unit } from "./UnitFile.ts"

export const ROOT = Path.join(import.meta.dirname, "../..")
export const FOLDER = Path.join(ROOT, "deploy")

export const read = (file: string): string => fs.readFileSync(Path.join(FOLDER, file), "utf8")

export interface ComposeService {
  readonly image: string
  readonly user?: string
  readonly read_only?: boolean
  readonly cap_drop?: ReadonlyArray<string>
  readonly cap_add?: ReadonlyArray<string>
  readonly privileged?: boolean
  readonly security_opt?: ReadonlyArray<string>
  readonly networks?: { readonly default: { readonly ipv4_address: string } }
  readonly environment: Readonly<Record<string, string>>
  readonly healthcheck: { readonly test: ReadonlyArray<string> }
  readonly stop_grace_period: string
  readonly volumes: ReadonlyArray<string>
}

export interface ComposeNetwork {
  readonly subnet: string
  /** Address range of the containers. */
  readonly ip_range: string
  readonly gateway: string
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly networks: { readonly default: { readonly ipam: { readonly config: ReadonlyArray<ComposeNetwork> } } }
}

/** Returns the compose file with its merged parts. */
export const compose = (): Compose => parse(read("compose.yaml"), { merge: true }) as Compose

/** Returns the services that run Till. */
export const composeRunners = (): ReadonlyArray<readonly [string, ComposeService]> =>
  Object.entries(compose().services).filter(([name]) => /^till\d$/u.test(name))

/** Interpolates variables as Compose does: `${NAME}`, `${NAME:-default}`, `${NAME:?error}`. */
export const interpolated = (text: string, variables: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\$\{(?<name>\w+)(?::(?<kind>[-?])(?<text>[^}]*))?\}/gu, (_, name: string, kind, text: string) => {
    const value = variables[name] ?? (kind === "-" ? text : undefined)
    if (value === undefined) throw new Error(`${name}: ${text}`)
    return value
  })

/** Returns the documents of the Kubernetes manifest. */
export const manifests = (): ReadonlyArray<{ readonly apiVersion: string; readonly kind: string }> =>
  parseAllDocuments(read("kubernetes.yaml")).map((document) => {
    if (document.errors.length > 0) throw document.errors[0]!
    return document.toJS() as { apiVersion: string; kind: string }
  })

interface Selector {
  readonly matchLabels: Readonly<Record<string, string>>
}

interface Named {
  readonly name: string
}

interface Container {
  readonly image: string
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean
    readonly readOnlyRootFilesystem: boolean
    readonly capabilities: unknown
  }
  readonly ports: ReadonlyArray<Named & { readonly containerPort: number }>
  readonly env: ReadonlyArray<Named & { readonly value?: string; readonly valueFrom?: unknown }>
  readonly startupProbe: { readonly httpGet: { readonly path: string; readonly port: string } }
  readonly readinessProbe: Container["startupProbe"]
  readonly livenessProbe: Container["startupProbe"]
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: ReadonlyArray<string> } } }
  readonly volumeMounts: ReadonlyArray<Named>
}

interface PolicyPeer {
  readonly podSelector?: Selector
  readonly namespaceSelector?: Selector
  readonly ipBlock?: { readonly cidr: string; readonly except?: ReadonlyArray<string> }
}

/** The fields that the tests read; the compiler has checked their types. */
export interface Kubernetes {
  readonly deployment: {
    readonly spec: {
      readonly selector: Selector
      readonly strategy: { readonly rollingUpdate: unknown }
      readonly template: {
        readonly metadata: { readonly labels: Selector["matchLabels"] }
        readonly spec: {
          readonly enableServiceLinks: boolean
          readonly terminationGracePeriodSeconds: number
          readonly containers: ReadonlyArray<Container>
          readonly volumes: ReadonlyArray<Named>
        }
      }
    }
  }
  readonly service: {
    readonly spec: { readonly selector: unknown; readonly ports: ReadonlyArray<{ readonly targetPort: string }> }
  }
  readonly budget: { readonly spec: { readonly selector: Selector; readonly maxUnavailable: number } }
  readonly policy: {
    readonly spec: {
      readonly podSelector: Selector
      readonly policyTypes: ReadonlyArray<string>
      readonly ingress: ReadonlyArray<{ readonly ports: unknown; readonly from?: unknown }>
      readonly egress: ReadonlyArray<{ readonly ports?: unknown; readonly to?: ReadonlyArray<PolicyPeer> }>
    }
  }
}

export const kubernetes = (): Kubernetes => {
  const [deployment, service, budget, policy] = manifests()
  return { deployment, service, budget, policy } as unknown as Kubernetes
}

export interface Instruction {
  readonly name: string
  readonly value: string
}

/** Returns the instructions of the Dockerfile in order. */
export const dockerfile = (): ReadonlyArray<Instruction> =>
  read("Dockerfile")
    .replaceAll(/^#.*\n/gmu, "")
    .replaceAll(/\\\n\s*/gu, "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { name, value } = /^(?<name>[A-Z]+) (?<value>.+)$/u.exec(line)?.groups ?? {}
      if (name === undefined || value === undefined) throw new Error(`no instruction: ${line}`)
      return { name, value }
    })

export const UNITS = ["till@.service", "till.target", "till-backup.service", "till-backup.timer"] as const

export const unit = (name: (typeof UNITS)[number]): Unit => parseUnit(read(`systemd/${name}`))

/** Returns the variables of every runner under systemd. */
export const environmentFile = (): ReadonlyArray<string> => assignmentsIn(read("systemd/till.env"))
