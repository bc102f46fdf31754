export { type JaegerTrace, toJaeger } from './jaeger.ts';
export { type OtlpReceiver, startOtlpReceiver } from './otlp-receiver.ts';
