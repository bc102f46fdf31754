import { Textarea, type TextareaProps } from '@mantine/core';

/** A text of any length; the field grows with it. */
export function TextBox({
  onChange,
  ...props
}: Pick<TextareaProps, 'label' | 'description' | 'required' | 'minRows'> & {
  readonly value: string;
  readonly onChange: (text: string) => void;
}) {
  return (
    <Textarea
      minRows={2}
      {...props}
      onChange={(event) => onChange(event.currentTarget.value)}
      autosize
    />
  );
}
