// The views, in the order of their names at the top. One whose task the library does not answer is not there.
import type { ComponentType } from 'preact';
import type { Catalogue } from './catalogue';
import type { Words } from './form/fields';
import { StepForm } from './form/step_form';
import { ChooseForm, ChooseView } from './view/choose';
import { CompareForm, CompareView } from './view/compare';
import { GpuForm, GpuView } from './view/gpu';
import { KernelForm, KernelView } from './view/kernel';
import { LayoutForm, LayoutView } from './view/layout';
import { ServeForm, ServeView } from './view/serve';
import { StepView } from './view/step';
import { TraceForm, TraceView } from './view/trace';

export interface View {
    id: string;
    name: string;
    about: string;
    task?: string;
    form: ComponentType<{ is: Words; of: Catalogue }>;
    body: ComponentType<{ is: Words; of: Catalogue }>;
}

export const views: readonly View[] = [
    { id: 'step', name: 'Step', about: 'one training step, or one of inference', form: StepForm, body: StepView },
    {
        id: 'layout',
        name: 'Layout',
        about: 'many GPUs: pipeline, exchanges, scaling, the best plan',
        form: LayoutForm,
        body: LayoutView,
    },
    { id: 'serve', name: 'Serve', about: 'requests over time', task: 'serve', form: ServeForm, body: ServeView },
    {
        id: 'choose',
        name: 'Choose',
        about: 'which GPUs to rent, and how many: for training, for serving',
        task: 'choose',
        form: ChooseForm,
        body: ChooseView,
    },
    {
        id: 'compare',
        name: 'Compare',
        about: 'two or more steps side by side, and why they differ',
        task: 'compare',
        form: CompareForm,
        body: CompareView,
    },
    { id: 'kernel', name: 'Kernel', about: 'one kernel while a size grows', form: KernelForm, body: KernelView },
    { id: 'gpu', name: 'GPU', about: 'the catalogue, and a spec of your own', form: GpuForm, body: GpuView },
    { id: 'trace', name: 'Trace', about: 'a profile of your own run', task: 'trace', form: TraceForm, body: TraceView },
];
