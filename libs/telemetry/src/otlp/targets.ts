/** The OTLP transport. */
export type OtlpProtocol = 'grpc' | 'http/protobuf';

/** The supported OTLP transports. */
export const OTLP_PROTOCOLS = ['grpc', 'http/protobuf'] as const satisfies readonly OtlpProtocol[];

/** The collector of one signal. Headers, certificates and compression come from OTEL_EXPORTER_OTLP_* variables. */
export interface OtlpTarget {
  /** With http/protobuf the full URL, including the path. */
  readonly endpoint: string;
  readonly protocol: OtlpProtocol;
}

/** The collectors by signal; an omitted signal is not exported. */
export interface OtlpTargets {
  readonly traces?: OtlpTarget;
  readonly metrics?: OtlpTarget;
  readonly logs?: OtlpTarget;
  /** Interval between two exports of metrics, ms. Default 60,000. */
  readonly metricIntervalMs?: number;
}
