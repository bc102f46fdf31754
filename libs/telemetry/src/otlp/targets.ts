/** How OTLP travels. */
export type OtlpProtocol = 'grpc' | 'http/protobuf';

/** The protocols that are known. */
export const OTLP_PROTOCOLS = ['grpc', 'http/protobuf'] as const satisfies readonly OtlpProtocol[];

/** Where one signal goes. Headers, certificates and time limits come from the standard variables. */
export interface OtlpTarget {
  /** With http/protobuf the whole URL, path included. */
  readonly endpoint: string;
  readonly protocol: OtlpProtocol;
}

/** Where each signal goes; one that is absent goes nowhere. */
export interface OtlpTargets {
  readonly traces?: OtlpTarget;
  readonly metrics?: OtlpTarget;
  readonly logs?: OtlpTarget;
  /** Milliseconds between two exports of metrics; default a minute. */
  readonly metricIntervalMs?: number;
}
